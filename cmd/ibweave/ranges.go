package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
)

// valueRange says what flags take that have a number, a list of numbers or a day. A flag whose default of 0
// stands for "not given" does not take 0, nor any of them an empty text: the unset variable of a script
// would lift a limit.
type valueRange struct {
	flags       string // names, or command and name as in "place.top", which goes before the name
	least, most float64
	above       bool   // not least itself
	not0        bool   // of a range with negative numbers
	want        string // what the flag takes, "" to say the bounds
	// check, if any, takes the place of the bounds: errors of it say what is wanted, if want is "".
	check func(text string) error
	words []string // that a flag takes, where it was defined by wordFlag
}

// Bounds that are far from any use, and where sums are still finite.
const (
	maxFactor = 1e6     // times a load
	maxNumber = 1 << 30 // of something that is counted; messages do not say it
	maxSeed   = math.MaxUint64
)

// ranges has all flags that take numbers, or days, but those of sim that are a parsedValue or listValue
// and refuse values themselves: a test fails for a flag without a row.
var ranges = []valueRange{
	{flags: "at-once block-size dim groups hosts-per-leaf jobs max-entries planes radix sample samples stages switches vl-credits", least: 1, most: maxNumber},
	{flags: "bisections cores degree directors drop-links half-cabled hosts hottest k leaves levels line-chips management-hosts management-leaves " +
		"max-detour p parallel permutations pods ports rails retries service-hosts shifts spare-cores spine-chips spines switch-ports top", most: maxNumber},
	{flags: "place.hosts place.top", least: 1, most: 1 << 20},
	{flags: "search", most: 1 << 20},
	{flags: "ranks-per-host", most: 1 << 10},
	{flags: "bound-iterations", least: -maxNumber, most: maxNumber, not0: true, want: "rounds, 1 or more, or -1 for cuts alone"},
	{flags: "depth", least: 1, most: 2},
	{flags: "date", check: func(text string) error { _, err := time.Parse(time.DateOnly, text); return err }, want: "a day, like 2026-12-31"},
	{flags: "dims", check: func(text string) error { _, err := mesh.ParseDims(text); return err }},
	{flags: "fill", least: 1, most: 100},
	{flags: "hot", least: 1, most: maxFactor, above: true},
	{flags: "limit", least: 1, most: maxFactor},
	{flags: "lmc", most: fabric.MaxLMC},
	{flags: "max-mlid mlid", check: func(text string) error {
		n, err := strconv.ParseUint(text, 0, 16)
		if err == nil && (fabric.LID(n) < mft.MinMLID || fabric.LID(n) > mft.MaxMLID) {
			err = strconv.ErrRange
		}
		return err
	}, want: fmt.Sprintf("%#x to %#x", uint16(mft.MinMLID), uint16(mft.MaxMLID))},
	{flags: "mft-capacity", least: 1, most: float64(mft.NumMLIDs)},
	{flags: "mix", least: 1, most: maxSeed, want: "a seed, 1 to 2^64-1"},
	{flags: "mkey", most: maxSeed, want: "a key, 0 to 2^64-1"},
	{flags: "mtu", least: 256, most: 4096},
	{flags: "percent", most: 100, above: true},
	{flags: "pkey", most: math.MaxUint16},
	{flags: "qkey", most: math.MaxUint32},
	{flags: "rebalance uniform-floor", least: 1, most: maxRebalance},
	{flags: "seconds", least: 0.001, most: 1e9},
	{flags: "seed", most: maxSeed, want: "a seed, 0 to 2^64-1"},
	{flags: "shard", check: func(text string) error { _, _, err := parseShard(text); return err }, want: "i/n, i from 1 to n"},
	{flags: "size", check: func(text string) error {
		if _, ok := jobs.ParseSize(text); !ok {
			return strconv.ErrSyntax
		}
		return nil
	}, want: "bytes, " + jobs.Sizes},
	{flags: "sl", most: lft.NumSLs - 1},
	{flags: "timeout", check: func(text string) error {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 || d > 24*time.Hour {
			return strconv.ErrRange
		}
		return nil
	}, want: "more than 0s, and at most 24h"},
	{flags: "vls", check: func(text string) error {
		n, err := strconv.Atoi(text)
		return cmp.Or(err, lft.CheckVLCount(n))
	}, want: "1, 2, 4, 8 or 15"},
	{flags: "window", least: 1, most: 1024},
}

// rangeOf returns the row of ranges that a flag of a command has, nil for none.
func rangeOf(command, flag string) *valueRange {
	rows := rangesByFlag()
	return cmp.Or(rows[command+"."+flag], rows[flag])
}

// rangesByFlag has the rows of ranges by their flags.
var rangesByFlag = sync.OnceValue(func() map[string]*valueRange {
	rows := make(map[string]*valueRange)
	for i := range ranges {
		for _, name := range strings.Fields(ranges[i].flags) {
			rows[name] = &ranges[i]
		}
	}
	return rows
})

// rangedValue is a flag that takes what a row of ranges says.
type rangedValue struct {
	pflag.Value
	in    *valueRange
	whole bool
	later bool   // wrongValues returns what Set would refuse
	text  string // of a value out of the range, if later
	err   error
}

// rangeError is a value that a flag does not take: --limit 0: want 1 to 1000.
type rangeError struct{ error }

func (v *rangedValue) Set(text string) error {
	items := []string{text}
	if strings.HasSuffix(v.Type(), "Slice") {
		items = strings.Split(text, ",")
	}
	var wrong error
	for _, item := range items {
		wrong = cmp.Or(wrong, v.in.holds(item, v.whole))
	}
	if wrong == nil && v.Value.Set(text) != nil { // such as 1_0
		wrong = v.in.wanted()
	}
	switch {
	case wrong == nil:
		v.err = nil // of a value given before
		return nil
	case v.later:
		v.text, v.err = text, wrong
		return nil
	}
	return &rangeError{wrong}
}

// wrongValues returns an error for each flag of a command with a value out of its range, where
// parsing did not stop at the first.
func wrongValues(c *cobra.Command) (list []error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*rangedValue); ok && v.err != nil {
			list = append(list, wrongValue(f, v.text, v.err))
		}
	})
	return list
}

// wrongValue is the error of a value that a flag does not take.
func wrongValue(f *pflag.Flag, text string, err error) error {
	if text == "" || !isNumber(f) {
		text = strconv.Quote(text)
	}
	return usagef("--%s %s: %w", f.Name, text, err)
}

// holds returns nil for a value of the range, else what is wanted.
func (r *valueRange) holds(text string, whole bool) error {
	switch {
	case slices.Contains(r.words, text):
		return nil
	case r.words != nil:
		return r.wanted()
	case r.check != nil:
		err := r.check(text)
		if err != nil && r.want != "" {
			err = r.wanted()
		}
		return err
	}
	x, err := strconv.ParseFloat(text, 64)
	if whole {
		var n int64
		var u uint64
		if n, err = strconv.ParseInt(text, 0, 64); err == nil {
			x = float64(n)
		} else if u, err = strconv.ParseUint(text, 0, 64); err == nil {
			x = float64(u)
		}
	}
	if err != nil || !(x >= r.least && x <= r.most) || r.above && x == r.least || r.not0 && x == 0 {
		return r.wanted()
	}
	return nil
}

// wanted says what a flag takes.
func (r *valueRange) wanted() error {
	plain := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case r.want != "":
		return errors.New("want " + r.want)
	case r.above:
		return fmt.Errorf("want more than %s, and at most %s", plain(r.least), plain(r.most))
	case r.most == maxNumber:
		return fmt.Errorf("want %s or more", plain(r.least))
	}
	return fmt.Errorf("want %s to %s", plain(r.least), plain(r.most))
}

// limitFlags makes the flags of a command take what ranges says.
func limitFlags(c *cobra.Command) {
	later := c.Name() == "compile"
	limit := func(f *pflag.Flag) {
		v, done := f.Value.(*rangedValue)
		if done {
			v.later = later
		} else if r := rangeOf(c.Name(), f.Name); r != nil && (isNumber(f) || f.Value.Type() == "string" && r.check != nil) {
			f.Value = &rangedValue{Value: f.Value, in: r, whole: !strings.HasPrefix(f.Value.Type(), "float"), later: later}
		}
	}
	c.Flags().VisitAll(limit)
	c.PersistentFlags().VisitAll(limit)
}

// isNumber says whether a flag has a number, a list of them or a time, and no form of its own.
func isNumber(f *pflag.Flag) bool {
	return slices.ContainsFunc([]string{"int", "uint", "float", "duration"}, func(kind string) bool { return strings.HasPrefix(f.Value.Type(), kind) })
}

// flagError is the error of a flag: of a value out of its range, --limit 0: want 1 to 1000000.
func flagError(cmd *cobra.Command, err error) error {
	invalid, _ := errors.AsType[*pflag.InvalidValueError](err)
	out, isOut := errors.AsType[*rangeError](err)
	if invalid == nil || !isOut {
		return &usageError{fmt.Errorf("%w%s", err, cli.NearFlag(cmd, err))}
	}
	return wrongValue(invalid.GetFlag(), invalid.GetValue(), out)
}
