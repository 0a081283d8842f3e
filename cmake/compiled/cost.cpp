#include "tenon/cost/read_bandwidth.inl"
#include "tenon/cost/measured_host.inl"
