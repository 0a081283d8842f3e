#include "tenon/cost/measured_host.inl"
#include "tenon/cost/read_bandwidth.inl"
