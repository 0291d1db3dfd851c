/*-------------------------------------------------------------------------
 *
 * buffer_pool.c
 *	  The memory that gpusortd shares with a client, for batches of rows.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/buffer_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/*
 * The file must be sealed against shrinking: if the client truncated it, access
 * to it would raise SIGBUS here.
 */
const char *
gs_buffer_pool_map(GsBufferPool *buffer_pool, GsDevice *device, const GsHello *hello, int memfd,
				   GsFailure *failure)
{
	struct stat status;
	int			seals = fcntl(memfd, F_GET_SEALS);
	void	   *base;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
		fstat(memfd, &status) != 0 || !S_ISREG(status.st_mode))
		return "the shared buffers are not a memfd sealed against shrinking";
	if ((uint64_t) status.st_size != hello->buffer_pool_bytes)
		return "the shared buffers have another size than HELLO says";
	*failure = GS_FAILED_MEMORY;
	base = mmap(NULL, hello->buffer_pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		return "could not map the shared buffers";
	if (!device->ops->pin(device, base, hello->buffer_pool_bytes))
	{
		munmap(base, hello->buffer_pool_bytes);
		return "could not pin the shared buffers";
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
		(void) madvise(buffer_pool->base,
					   (size_t) buffer_pool->buffer_bytes * buffer_pool->nbuffers, MADV_REMOVE);
	munmap(buffer_pool->base, (size_t) buffer_pool->buffer_bytes * buffer_pool->nbuffers);
	buffer_pool->base = NULL;
}
