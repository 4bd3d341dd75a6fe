package sim

import (
	"strconv"
)

// Time is a moment, in picoseconds from the start of a simulation, or how long
// something takes.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Nanoseconds is t in nanoseconds.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// String is t in nanoseconds: "12.5ns".
func (t Time) String() string {
	return strconv.FormatFloat(t.Nanoseconds(), 'f', -1, 64) + "ns"
}

// BytePs is how long a byte takes at a data rate in megabits a second, in
// 1/1024 ps and rounded up: exact for all rates of InfiniBand but FDR and FDR10.
func bytePs(mbps int) int64 {
	return (8_000_000*1024 + int64(mbps) - 1) / int64(mbps)
}

// takes is how long so many bytes take at a rate of bytePs, rounded up.
func takes(bytes int32, rate int64) Time {
	return Time((int64(bytes)*rate + 1023) >> 10)
}
