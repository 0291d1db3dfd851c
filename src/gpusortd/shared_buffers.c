/*-------------------------------------------------------------------------
 *
 * shared_buffers.c
 *	  The shared memory that a client's rows go through.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/shared_buffers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/*
 * Sealed against shrinking, or the client could cut it under our feet, and
 * whoever touches it gets SIGBUS.
 */
const char *
gs_ring_map(GsRing *ring, GsDevice *device, const GsHello *hello, int memfd, GsFailure *failure)
{
	struct stat status;
	int			seals = fcntl(memfd, F_GET_SEALS);
	void	   *base;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
		fstat(memfd, &status) != 0 || !S_ISREG(status.st_mode))
		return "the ring is not a memfd that is sealed against shrinking";
	if ((uint64_t) status.st_size != hello->ring_bytes)
		return "the ring is not as long as said";
	*failure = GS_FAILED_MEMORY;
	base = mmap(NULL, hello->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		return "the ring cannot be mapped";
	if (!device->ops->pin(device, base, hello->ring_bytes))
	{
		munmap(base, hello->ring_bytes);
		return "the ring cannot be pinned";
	}
	*ring = (GsRing)
	{
		.base = base,.slot_bytes = hello->slot_bytes,.nslots = hello->nslots
	};
	return NULL;
}

void
gs_ring_unmap(GsRing *ring, GsDevice *device, bool unused)
{
	if (ring->base == NULL)
		return;
	device->ops->unpin(device, ring->base);
	if (unused)
		(void) madvise(ring->base, (size_t) ring->slot_bytes * ring->nslots, MADV_REMOVE);
	munmap(ring->base, (size_t) ring->slot_bytes * ring->nslots);
	ring->base = NULL;
}
