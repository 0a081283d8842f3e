#include "tenon/quant/named_formats.inl"
