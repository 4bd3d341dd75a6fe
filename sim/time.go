package sim

import (
	"fmt"
	"strconv"
	"strings"
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

// takes is how long some bytes take at a rate of bytePs, rounded up.
func takes(bytes int32, rate int64) Time {
	return Time((int64(bytes)*rate + 1023) >> 10)
}

// ParseTime reads a decimal number of ps, ns, us, ms or s, such as "12.5ns", from 0
// on and exactly.
func ParseTime(text string) (Time, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	decimals, ok := map[string]int{"ps": 0, "ns": 3, "us": 6, "ms": 9, "s": 12}[text[len(digits):]]
	whole, part, point := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", max(0, decimals-len(part))), 10, 62)
	if !ok || err != nil || whole == "" || point && part == "" || len(part) > decimals || strings.ContainsAny(digits, "+-_") {
		return 0, fmt.Errorf("time %q: want a number and ps, ns, us, ms or s, such as 12.5ns", text)
	}
	return Time(n), nil
}
