#include "tenon/cost/read_bandwidth.inl"
