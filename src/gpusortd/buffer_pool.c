/*-------------------------------------------------------------------------
 *
 * buffer_pool.c
 *	  The shared memory that a client's rows go through.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/buffer_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/*
 * Sealed against shrinking, or the client could cut it under our feet, and
 * whoever touches it gets SIGBUS.
 */
const char *
gs_buffer_pool_map(GsBufferPool *buffer_pool, GsDevice *device, const GsHello *hello, int memfd, GsFailure *failure)
{
	struct stat status;
	int			seals = fcntl(memfd, F_GET_SEALS);
	void	   *base;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
		fstat(memfd, &status) != 0 || !S_ISREG(status.st_mode))
		return "the buffer pool is not a memfd sealed against shrinking";
	if ((uint64_t) status.st_size != hello->buffer_pool_bytes)
		return "the buffer pool has a different size than announced";
	*failure = GS_FAILED_MEMORY;
	base = mmap(NULL, hello->buffer_pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		return "could not map the buffer pool";
	if (!device->ops->pin(device, base, hello->buffer_pool_bytes))
	{
		munmap(base, hello->buffer_pool_bytes);
		return "could not pin the buffer pool";
	}
	*buffer_pool = (GsBufferPool)
	{
		.base = base,.buffer_bytes = hello->buffer_bytes,.nbuffers = hello->nbuffers
	};
	return NULL;
}

void
gs_buffer_pool_unmap(GsBufferPool *buffer_pool, GsDevice *device, bool unused)
{
	if (buffer_pool->base == NULL)
		return;
	device->ops->unpin(device, buffer_pool->base);
	if (unused)
		(void) madvise(buffer_pool->base, (size_t) buffer_pool->buffer_bytes * buffer_pool->nbuffers, MADV_REMOVE);
	munmap(buffer_pool->base, (size_t) buffer_pool->buffer_bytes * buffer_pool->nbuffers);
	buffer_pool->base = NULL;
}
