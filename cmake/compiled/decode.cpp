#include "tenon/decode/candidates.inl"
#include "tenon/decode/logits.inl"
#include "tenon/decode/sampling_options.inl"
#include "tenon/decode/sampling_steps.inl"
