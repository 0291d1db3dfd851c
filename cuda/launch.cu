/*-------------------------------------------------------------------------
 *
 * launch.cu
 *	  Properties of the device and of kernels, and kernel launches.
 *
 * Queries of the runtime take microseconds, which matters for sorts of 100 thousand
 * keys, so the results are cached for each device.
 *
 *-------------------------------------------------------------------------
 */
#include "launch.cuh"

static thread_local cudaError_t last_error = cudaSuccess;

const char *
gs_device_last_error(void)
{
	return cudaGetErrorString(last_error);
}

GsDeviceStatus
gs_cuda_status(cudaError_t error)
{
	if (error == cudaSuccess)
		return GS_DEVICE_OK;
	last_error = error;
	return GS_DEVICE_CUDA_ERROR;
}

GsDeviceStatus
gs_device_properties(GsDeviceProperties *properties)
{
	static const cudaDeviceAttr attributes[] = {
		cudaDevAttrMaxSharedMemoryPerBlockOptin, cudaDevAttrComputeCapabilityMajor,
		cudaDevAttrComputeCapabilityMinor, cudaDevAttrMultiProcessorCount};
	static GsDeviceProperties known[GS_MAX_DEVICES];
	int values[4];
	int device;
	cudaError_t error = cudaGetDevice(&device);

	if (error != cudaSuccess)
		return gs_cuda_status(error);
	if (device < GS_MAX_DEVICES &&
		__atomic_load_n(&known[device].nmultiprocessors, __ATOMIC_ACQUIRE) != 0)
	{
		*properties = known[device];
		return GS_DEVICE_OK;
	}
	for (int i = 0; i < 4 && error == cudaSuccess; i++)
		error = cudaDeviceGetAttribute(&values[i], attributes[i], device);
	if (error != cudaSuccess)
		return gs_cuda_status(error);
	*properties = {device, values[3], values[0], values[1] * 10 + values[2]};
	if (device < GS_MAX_DEVICES)
	{
		/* nmultiprocessors is stored last, because it marks the entry as valid */
		known[device].number = device;
		known[device].shared_bytes = properties->shared_bytes;
		known[device].capability = properties->capability;
		__atomic_store_n(&known[device].nmultiprocessors, values[3], __ATOMIC_RELEASE);
	}
	return GS_DEVICE_OK;
}

GsDeviceStatus
gs_kernel_resident_blocks(GsKernelOccupancy *known, const GsDeviceProperties *properties,
						  const void *kernel, int nthreads, size_t shared_bytes, uint32_t *nblocks)
{
	int resident = 0;

	if (properties->number < GS_MAX_DEVICES)
		resident = __atomic_load_n(&known->nblocks[properties->number], __ATOMIC_ACQUIRE);
	if (resident == 0)
	{
		cudaError_t error = cudaFuncSetAttribute(kernel,
												 cudaFuncAttributeMaxDynamicSharedMemorySize,
												 (int) shared_bytes);

		if (error == cudaSuccess)
			error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, nthreads,
																  shared_bytes);
		if (error == cudaSuccess && resident == 0)
			error = cudaErrorInvalidConfiguration;
		if (error != cudaSuccess)
			return gs_cuda_status(error);
		if (properties->number < GS_MAX_DEVICES)
			__atomic_store_n(&known->nblocks[properties->number], resident, __ATOMIC_RELEASE);
	}
	*nblocks = (uint32_t) resident * properties->nmultiprocessors;
	return GS_DEVICE_OK;
}

GsDeviceStatus
gs_launch(const void *kernel, uint32_t nblocks, uint32_t nthreads, size_t shared_bytes,
		  void *stream, bool early, void **args)
{
	cudaLaunchAttribute attribute;
	cudaLaunchConfig_t config = {};

	config.gridDim = dim3(nblocks);
	config.blockDim = dim3(nthreads);
	config.dynamicSmemBytes = shared_bytes;
	config.stream = (cudaStream_t) stream;
	if (early)
	{
		attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
		attribute.val.programmaticStreamSerializationAllowed = 1;
		config.attrs = &attribute;
		config.numAttrs = 1;
	}
	return gs_cuda_status(cudaLaunchKernelExC(&config, kernel, args));
}
