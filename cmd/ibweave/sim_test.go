package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
)

func TestParseLoads(t *testing.T) {
	for text, want := range map[string][]float64{
		"0.5": {0.5}, "0.1:0.5:0.1": {0.1, 0.2, 0.3, 0.4, 0.5}, "0.1:0.45:0.1": {0.1, 0.2, 0.3, 0.4}, "1:1:1": {1}, "0.05:0.15:0.05": {0.05, 0.1, 0.15},
	} {
		if got, err := parseLoads(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "NaN", "Inf", "1001", "0.1:0.5", "0.5:0.1:0.1", "0.1:0.5:0", "0.1:0.5:0.1:1", "1:1000:0.000001"} {
		if got, err := parseLoads(text); err == nil || got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A list that is set again takes the place of the first one, and one that is wrong
// changes nothing.
func TestListValue(t *testing.T) {
	loads := []float64{9}
	flags := pflag.NewFlagSet("sim", pflag.ContinueOnError)
	cli.ListFlag(flags, &loads, "load", "", "", parseLoads)
	f := flags.Lookup("load")
	for _, tt := range []struct {
		text string
		want []float64
	}{{"0.1, 0.2:0.3:0.1", []float64{0.1, 0.2, 0.3}}, {"0.4,x", []float64{0.1, 0.2, 0.3}}, {"0.4", []float64{0.4}}, {"0.01:1000:0.01,0.01:1000:0.01", []float64{0.4}}} {
		before := slices.Clone(loads)
		_ = f.Value.Set(tt.text)
		if _, err := cli.WrongValue(f); !slices.Equal(loads, tt.want) || err != nil && !slices.Equal(loads, before) {
			t.Errorf("%s: %d loads, %v", tt.text, len(loads), err)
		}
	}
}
