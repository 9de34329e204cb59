package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// result is what a subcommand prints. Fields that a load does not measure are
// left out of the JSON.
type result struct {
	Load             string  `json:"load"`
	Topic            string  `json:"topic,omitempty"`
	Records          int     `json:"records,omitempty"`
	Requests         int     `json:"requests,omitempty"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"records_per_s,omitempty"`
	P50Ms            float64 `json:"p50_ms,omitempty"`
	P99Ms            float64 `json:"p99_ms,omitempty"`
	MaxMs            float64 `json:"max_ms,omitempty"`
	// StepsMs are the medians of a group's steps, by name.
	StepsMs map[string]float64 `json:"steps_ms,omitempty"`
	Groups  int                `json:"groups,omitempty"`
	// ServerCPUSeconds is absent without -pid.
	ServerCPUSeconds *float64 `json:"server_cpu_s,omitempty"`
	ClientCPUSeconds float64  `json:"client_cpu_s"`
	// Node is the broker that a failover has ended.
	Node int32 `json:"node,omitempty"`
}

// clockTicksPerSecond is the unit of /proc/<pid>/stat: USER_HZ, 100 on every
// Linux that Go runs on.
const clockTicksPerSecond = 100

// span is the stretch of time a load is measured over.
type span struct {
	serverPids []int
	start      time.Time
	serverCPU  float64
	clientCPU  float64
}

// startSpan begins measuring; without processes the brokers' CPU is not of interest.
func startSpan(serverPids []int) (*span, error) {
	serverCPU, err := cpuSecondsOf(serverPids)
	if err != nil {
		return nil, err
	}
	return &span{serverPids, time.Now(), serverCPU, ownCPUSeconds()}, nil
}

// end closes the span in which so many records passed.
func (s *span) end(records int) (*result, error) {
	seconds := time.Since(s.start).Seconds()
	measured := &result{
		Records:          records,
		Seconds:          seconds,
		RecordsPerSecond: float64(records) / seconds,
		ClientCPUSeconds: ownCPUSeconds() - s.clientCPU,
	}
	if len(s.serverPids) > 0 {
		after, err := cpuSecondsOf(s.serverPids)
		if err != nil {
			return nil, err
		}
		used := after - s.serverCPU
		measured.ServerCPUSeconds = &used
	}
	return measured, nil
}

// add takes another span's time and CPU in.
func (r *result) add(other *result) {
	r.Seconds += other.Seconds
	r.ClientCPUSeconds += other.ClientCPUSeconds
	if other.ServerCPUSeconds != nil {
		used := *other.ServerCPUSeconds
		if r.ServerCPUSeconds != nil {
			used += *r.ServerCPUSeconds
		}
		r.ServerCPUSeconds = &used
	}
}

// cpuSecondsOf adds up the CPU time of several processes.
func cpuSecondsOf(pids []int) (float64, error) {
	sum := 0.0
	for _, pid := range pids {
		seconds, err := cpuSecondsOfOne(pid)
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}

// cpuSecondsOfOne reads utime + stime of a process, all its threads included.
func cpuSecondsOfOne(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command's name is in brackets and may hold anything: count from behind it.
	// The first field there is number 3 (state); utime is 14, stime 15.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	user, err := strconv.ParseFloat(string(fields[14-3]), 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(string(fields[15-3]), 64)
	if err != nil {
		return 0, err
	}
	return (user + system) / clockTicksPerSecond, nil
}

func ownCPUSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// setLatencies fills in the percentiles of latencies, which it sorts.
func (r *result) setLatencies(latencies []time.Duration) {
	slices.Sort(latencies)
	at := func(fraction float64) float64 {
		index := min(int(fraction*float64(len(latencies))), len(latencies)-1)
		return float64(latencies[index]) / float64(time.Millisecond)
	}
	r.P50Ms, r.P99Ms, r.MaxMs = at(0.50), at(0.99), at(1)
}
