#include "tenon/kernels/activations.inl"
#include "tenon/kernels/attention_ops.inl"
#include "tenon/kernels/row_ops.inl"
