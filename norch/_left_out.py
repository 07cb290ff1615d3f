"""What PyTorch has and norch leaves out, and why: the one list of it.

AttributeErrors give the reason from here, docs/operations.md prints it, and tests/test_names.py holds it against
PyTorch: every public name of torch, torch.Tensor, torch.nn.functional and the modules below is either here or in norch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# reason: {where: names}, with where = "torch", "Tensor" (its attributes), "functional" (torch.nn.functional), or a
# module of torch.
LEFT_OUT: dict[str, dict[str, str]] = {
    "complex numbers": {
        "torch": """
            ComplexDoubleStorage angle cdouble cfloat chalf complex complex128 complex32 complex64
            conj_physical conj_physical_ fft imag polar view_as_complex view_as_complex_copy view_as_real
            view_as_real_copy
        """,
        "Tensor": """
            angle cdouble cfloat chalf conj_physical conj_physical_ imag
        """,
    },
    "sparse tensors": {
        "torch": """
            ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy jagged layout
            masked nested resize_as_sparse_ row_indices_copy saddmm smm sparse sparse_bsc sparse_bsc_tensor
            sparse_bsr sparse_bsr_tensor sparse_compressed_tensor sparse_coo sparse_coo_tensor sparse_csc
            sparse_csc_tensor sparse_csr sparse_csr_tensor spmm sspaddmm strided values_copy
        """,
        "Tensor": """
            ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced layout
            resize_as_sparse_ row_indices smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_
            sspaddmm to_dense to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
            to_sparse_csc to_sparse_csr values
        """,
        "functional": """
            sparse_support_notes
        """,
        "cuda": """
            sparse
        """,
    },
    "quantised tensors": {
        "torch": """
            QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage ao
            choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine
            fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight
            fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
            fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
            fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant
            int_repr per_channel_affine per_channel_affine_float_qparams per_channel_symmetric
            per_tensor_affine per_tensor_symmetric q_per_channel_axis q_per_channel_scales
            q_per_channel_zero_points q_scale q_zero_point qint32 qint8 qscheme quantization
            quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm
            quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d
            quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
            quint2x4 quint4x2 quint8
        """,
        "Tensor": """
            dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
            q_zero_point qscheme
        """,
        "functional": """
            ScalingType SwizzleType grouped_mm scaled_grouped_mm scaled_mm
        """,
    },
    "distribution over machines, other devices and compilers": {
        "torch": """
            AcceleratorError DeviceObjType Event Future GradScaler Stream StreamObjType
            accelerator amp autocast autocast_decrement_nesting autocast_increment_nesting
            clear_autocast_cache compile compiled_with_cxx11_abi compiler cond cpp cpu
            cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu
            cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable
            distributed export fork futures fx get_autocast_cpu_dtype get_autocast_dtype
            get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype get_device_module
            get_num_interop_threads has_lapack has_mkl has_openmp has_spectral hub init_num_threads
            is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled
            is_autocast_xla_enabled is_distributed is_vulkan_available jit library miopen_batch_norm
            miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
            miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn
            mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d
            mkldnn_max_pool3d mkldnn_rnn_layer monitor mps mtia multiprocessing package
            prepare_multiprocessing_environment profiler profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
            set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
            set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled
            set_autocast_xla_dtype set_autocast_xla_enabled set_num_interop_threads thread_safe_generator
            wait while_loop windows xpu
        """,
        "Tensor": """
            ipu is_distributed mtia record_stream share_memory_ to_mkldnn xpu
        """,
        "nn": """
            DataParallel SyncBatchNorm
        """,
        "utils.data": """
            DistributedSampler
        """,
        "nn.Module": """
            compile ipu mtia share_memory xpu
        """,
        "cuda": """
            CUDAGraph amp can_device_access_peer graph graph_pool_handle graphs
            is_current_stream_capturing jiterator make_graphed_callables nccl
        """,
    },
    "named tensors": {
        "Tensor": """
            name
        """,
    },
    "linear algebra of LAPACK: numpy.linalg and scipy.linalg have it, and read x.numpy()": {
        "torch": """
            cholesky cholesky_inverse cholesky_solve det eig frobenius_norm geqrf inverse lobpcg logdet
            lstsq lu lu_solve lu_unpack matrix_exp matrix_rank nuclear_norm orgqr ormqr pca_lowrank pinverse
            qr slogdet solve svd svd_lowrank symeig triangular_solve
        """,
        "Tensor": """
            cholesky cholesky_inverse cholesky_solve det eig geqrf inverse logdet lstsq lu lu_solve
            matrix_exp orgqr ormqr pinverse qr slogdet solve svd symeig triangular_solve
        """,
        "linalg": """
            LinAlgError cholesky cholesky_ex cond det eig eigh eigvals eigvalsh householder_product
            inv inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve
            matrix_exp matrix_rank pinv qr slogdet solve solve_ex solve_triangular svd svdvals
            tensorinv tensorsolve
        """,
    },
    "special functions beyond libm": {
        "torch": """
            i0 i0_ igamma igammac special
        """,
        "Tensor": """
            i0 i0_ igamma igamma_ igammac igammac_
        """,
    },
    "rare elementary functions": {
        "torch": """
            gcd gcd_ gradient heaviside histc histogram histogramdd lcm lcm_ nextafter
            nonzero_static segment_reduce
        """,
        "Tensor": """
            gcd gcd_ heaviside heaviside_ histc histogram lcm lcm_ nextafter nextafter_
            nonzero_static
        """,
        "linalg": """
            vander
        """,
    },
    "hooks on what nodes save: a built-in node keeps it in its slots; utils.checkpoint computes it again instead": {
        "autograd.graph": """
            allow_mutation_on_saved_tensors disable_saved_tensors_hooks save_on_cpu saved_tensors_hooks
        """,
    },
    "signal processing": {
        "torch": """
            bartlett_window blackman_window hamming_window hann_window istft kaiser_window signal stft
        """,
        "Tensor": """
            istft stft
        """,
    },
    "further layers: compose them of what there is": {
        "torch": """
            BufferDict ModuleDict ParameterDict adaptive_max_pool1d affine_grid_generator
            alpha_dropout_ batch_norm batch_norm_backward_elemt batch_norm_backward_reduce
            batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
            batch_norm_stats batch_norm_update_stats binary_cross_entropy_with_logits conv3d
            conv_tbc conv_transpose3d convolution cosine_embedding_loss ctc_loss dropout_
            embedding embedding_bag embedding_renorm_ feature_alpha_dropout feature_alpha_dropout_
            feature_dropout feature_dropout_ grid_sampler grid_sampler_2d grid_sampler_3d gru
            gru_cell hinge_embedding_loss instance_norm kl_div lstm lstm_cell margin_ranking_loss
            max_pool1d_with_indices max_pool3d native_batch_norm native_channel_shuffle
            native_dropout native_group_norm native_layer_norm native_norm norm_except_dim
            poisson_nll_loss rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell triplet_margin_loss
        """,
        "Tensor": """
            module_load
        """,
        "functional": """
            GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES adaptive_avg_pool3d
            adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d
            adaptive_max_pool3d_with_indices avg_pool3d conv3d conv_tbc conv_transpose3d
            feature_alpha_dropout fractional_max_pool2d
            fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
            grad linear_cross_entropy lp_pool3d
            max_pool1d_with_indices max_pool2d_with_indices max_pool3d max_pool3d_with_indices
            max_unpool1d max_unpool2d max_unpool3d multi_head_attention_forward multilabel_margin_loss
            native_channel_shuffle upsample upsample_bilinear upsample_nearest
        """,
        "nn": """
            AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool3d AvgPool3d BatchNorm3d
            Conv3d ConvTranspose3d CrossMapLRN2d FeatureAlphaDropout FractionalMaxPool2d
            FractionalMaxPool3d InstanceNorm3d LPPool3d LinearCrossEntropyLoss
            LinearCrossEntropyOptions MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
            MultiLabelMarginLoss
        """,
        "nn.utils": """
            fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights skip_init stateless
        """,
        "nn.utils.parametrize": """
            transfer_parametrizations_and_params
        """,
        "nn.utils.parametrizations": """
            orthogonal
        """,
    },
    "layers whose sizes wait for the first input: give the sizes": {
        "nn": """
            LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d
            LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d
            LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear UninitializedBuffer UninitializedParameter
        """,
        "nn.parameter": """
            UninitializedBuffer UninitializedParameter UninitializedTensorMixin is_lazy
        """,
    },
    "further optimizers: a subclass of norch.optim.Optimizer makes one": {
        "optim": """
            ASGD Adafactor Muon SparseAdam swap_in_optimizer_params_and_state
        """,
    },
    "copies of what are views: clone() the view": {
        "torch": """
            alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
            select_copy slice_copy slice_inverse split_copy split_with_sizes_copy squeeze_copy t_copy
            transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes
            unsqueeze_copy view_copy
        """,
        "Tensor": """
            narrow_copy slice_inverse unsafe_chunk unsafe_split unsafe_split_with_sizes
        """,
    },
    "further random distributions": {
        "torch": """
            binomial quasirandom
        """,
        "distributions": """
            AbsTransform AffineTransform Beta Binomial CatTransform Cauchy Chi2 ComposeTransform
            ContinuousBernoulli CorrCholeskyTransform CumulativeDistributionTransform Dirichlet ExpTransform
            ExponentialFamily FisherSnedecor Gamma GeneralizedPareto Geometric Gumbel HalfCauchy HalfNormal
            IndependentTransform InverseGamma Kumaraswamy LKJCholesky LogisticNormal LowRankMultivariateNormal
            LowerCholeskyTransform MixtureSameFamily Multinomial MultivariateNormal NegativeBinomial Pareto
            Poisson PositiveDefiniteTransform PowerTransform RelaxedBernoulli RelaxedOneHotCategorical
            ReshapeTransform SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform
            StickBreakingTransform StudentT TanhTransform Transform TransformedDistribution VonMises Weibull
            Wishart biject_to identity_transform transform_to
        """,
    },
    "a storage keeps its size and its tensors: reshape(), pad() and `.data = other` give others": {
        "torch": """
            resize_as_
        """,
        "Tensor": """
            resize resize_ resize_as resize_as_ set_
        """,
    },
    "subclasses of Tensor: results are plain tensors": {
        "Tensor": """
            as_subclass
        """,
    },
    "dtypes that norch has not": {
        "torch": """
            bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz
            float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 uint1 uint16 uint2
            uint3 uint32 uint4 uint5 uint6 uint64 uint7
        """,
    },
    "said otherwise here: arange(), x[...], from_numpy(numpy.frombuffer(...))": {
        "torch": """
            from_file frombuffer range
        """,
        "Tensor": """
            index
        """,
    },
    "parts and settings of PyTorch itself": {
        "torch": """
            AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BFloat16Storage
            BenchmarkConfig BenchmarkExecutionStats Block BoolStorage BoolType
            ByteStorage CallStack Capsule CharStorage ClassType Code CompilationUnit
            CompleteArgumentSpec ComplexFloatStorage ComplexType ConcreteModuleType
            ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DictType
            DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet DoubleStorage
            EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan FatalError FileCheck
            FloatStorage FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState
            HalfStorage IODescriptor InferredType IntStorage IntType InterfaceType
            JITException ListType LiteScriptModule LockingLogger LoggerBase LongStorage Node
            NoneType NoopLogger NumberType OperatorInfo OptionalType PRIVATE_OPS PyObjectType
            PyTorchFileReader PyTorchFileWriter RRefType SUM ScriptClass ScriptClassFunction ScriptDict
            ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator
            ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty
            SerializationStorageContext ShortStorage StaticModule Storage StorageBase StringType
            SymBool SymBoolType SymFloat SymInt SymIntType TYPE_CHECKING Tag TensorType ThroughputBenchmark
            TracingState TupleType Type TypedStorage USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH UnionType
            UntypedStorage Use Value channels_last channels_last_3d
            classes classproperty empty_permuted from_dlpack functional get_deterministic_debug_mode
            get_file_path hash_tensor import_ir_module
            import_ir_module_from_buffer is_deterministic_algorithms_warn_only_enabled
            is_inference_mode_enabled is_storage is_warn_always_enabled legacy_contiguous_format
            merge_type_from_type_comment overrides parse_ir parse_schema parse_type_comment return_types
            set_default_tensor_type set_deterministic_debug_mode
            set_flush_denormal set_warn_always sym_constrain_range sym_constrain_range_for_size
            sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack
            torch_version types unify_type_list version
        """,
        "Tensor": """
            const_data_ptr dim_order grad_dtype hash_tensor is_set_to map2_ output_nr
            reinforce storage storage_type volatile
        """,
        "functional": """
            BroadcastingList1 BroadcastingList2 BroadcastingList3 Callable DType Optional TYPE_CHECKING
            assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function
            has_torch_function_unary has_torch_function_variadic reproducibility_notes tf32_notes
        """,
        "nn": """
            Buffer Container NLLLoss2d factory_kwargs
        """,
        "nn.utils": """
            clip_grad_norm convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format
        """,
        "nn.init": """
            constant dirac kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal
            xavier_uniform
        """,
        "autograd": """
            NestedIOFunction enforce_grad_layout_policy set_multithreading_enabled variable
        """,
        "autograd.graph": """
            GradientEdge get_gradient_edge region_activation_memory_budget register_multi_grad_hook
            set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch
        """,
        "utils.data": """
            DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe
            guaranteed_datapipes_determinism non_deterministic runtime_validation runtime_validation_disabled
        """,
        "func": """
            debug_unwrap functionalize linearize rearrange replace_all_batch_norm_modules_
        """,
        "nn.Module": """
            T_destination call_super_init dump_patches
        """,
        "optim.Optimizer": """
            OptimizerPostHook OptimizerPreHook profile_hook_step
        """,
        "nn.parameter": """
            Buffer
        """,
        "linalg": """
            common_notes
        """,
        "cuda": """
            BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor
            CUDAPluggableAllocator CharStorage CharTensor ComplexDoubleStorage ComplexFloatStorage
            CudaError DeferredCudaCallError DoubleStorage DoubleTensor ExternalStream FloatStorage
            FloatTensor GreenContext HalfStorage HalfTensor IntStorage IntTensor LongStorage
            LongTensor MemPool ShortStorage ShortTensor StreamContext caching_allocator_alloc
            caching_allocator_delete caching_allocator_disabled caching_allocator_enable
            change_current_allocator check_error clock_rate cudaStatus cudart current_blas_handle
            current_solver_handle default_generators device_memory_used device_of
            get_allocator_backend get_arch_list get_gencode_flags get_per_process_memory_fraction
            get_rng_state_all get_stream_from_external get_sync_debug_mode has_half has_magma
            host_memory_stats_as_nested_dict ipc_collect is_bf16_supported is_tf32_supported
            list_gpu_processes max_memory_cached memory memory_cached memory_snapshot memory_stats
            memory_stats_as_nested_dict memory_summary memory_usage nvtx power_draw profiler
            reset_accumulated_host_memory_stats reset_accumulated_memory_stats
            reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats
            set_per_process_memory_fraction set_rng_state_all set_stream set_sync_debug_mode streams
            temperature tunable use_mem_pool utilization
        """,
    },
}

# Names that other work brings: they may be there already.
COMING = ("further layers: compose them of what there is",)

TABLE = "docs/operations.md lists what there is, and why the rest is not"


def reason(where: str, name: str) -> str | None:
    """Why a name of PyTorch is not in norch; None where nobody asked."""
    for why, names in LEFT_OUT.items():
        if name in names.get(where, "").split():
            return why
    return None


def missing(module: str, name: str) -> AttributeError:
    """What is raised for a name that a module of norch has not."""
    why = reason({"norch": "torch", "norch.nn.functional": "functional"}.get(module, module[6:]), name)
    if why is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}; {TABLE}")
    return AttributeError(f"module {module!r} leaves out {name!r} of PyTorch: {why}; {TABLE}")


def nothing_more(module: str) -> Callable[[str], Any]:
    """The __getattr__ of a module that has no names but those that stand in it."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        raise missing(module, name)

    return __getattr__


class Missing:
    """Stands in the class of tensors for a method that is left out: a __getattr__ would slow every attribute down."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        why = reason("Tensor", self.name)
        raise AttributeError(f"norch.Tensor leaves out {self.name!r} of PyTorch: {why}; {TABLE}")


def mark(cls: type) -> None:
    """Puts a Missing for each name of Tensor that is left out, where cls has not got it after all."""
    for names in LEFT_OUT.values():
        for name in names.get("Tensor", "").split():
            if not hasattr(cls, name):
                setattr(cls, name, Missing(name))
