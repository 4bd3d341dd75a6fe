package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// lanesNeeded is what dfsssp and lash log.
var lanesNeeded = regexp.MustCompile(`Lanes needed: (\d+)`)

// layered compares the engine layered with OpenSM's engines that use virtual lanes, on
// one fabric: time, lanes, and what the tables are worth. nue may use as many lanes as
// ibsim's ports have.
func (b *bench) layered(ctx context.Context, which string, engines []string) error {
	twin, err := b.twin(ctx, which)
	if err != nil {
		return err
	}
	dir, file, err := writeTopology(twin.Fabric)
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	theirs := make([][]time.Duration, len(engines))
	failed := make([]bool, len(engines)) // an engine that does not manage once is left out
	var ours, process []time.Duration
	for range b.runs {
		for i, name := range engines {
			if failed[i] {
				continue
			}
			t, err := openSM(ctx, twin, ibsim.OpenSMConfig{Engine: name + ",no_fallback", Flags: 0x07, Options: qos, Timeout: layeredTimeout})
			if err != nil {
				fmt.Fprintf(b.out, "  %-32s %v\n", "OpenSM "+name, err)
				failed[i] = true
				continue
			}
			theirs[i] = append(theirs[i], t)
		}
		s, p, err := b.compile(ctx, file, "layered")
		if err != nil {
			return err
		}
		ours, process = append(ours, duration(s.Route+s.Verify)), append(process, p)
	}
	for i, name := range engines {
		if failed[i] {
			continue
		}
		b.row("OpenSM "+name, theirs[i])
		b.ratio(theirs[i], ours)
	}
	b.row("ibweave layered, with verify", ours)
	b.row("ibweave layered, process", process)
	args := []string{"-t", file, "-e", "layered"}
	for i, name := range engines {
		if failed[i] {
			continue
		}
		tables := filepath.Join(dir, name)
		if err := b.dump(ctx, twin, name, tables); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(b.out, "  %-32s %v\n", "OpenSM "+name, err)
			continue
		}
		args = append(args, "--lfts", tables)
	}
	fmt.Fprintln(b.out, "\nOpenSM dumps its tables without lanes, hence credit loops:")
	return b.compare(ctx, args...)
}

// qos is what OpenSM needs for path SLs, and nue for lanes.
var qos = []string{"qos TRUE", "nue_max_num_vls 8"}

// layeredTimeout bounds a run of OpenSM that may have no engine left to take.
const layeredTimeout = 5 * time.Minute

// dump writes the tables of an engine of OpenSM into a file, and prints its lanes.
func (b *bench) dump(ctx context.Context, twin *ibsim.Twin, name, file string) error {
	dir := file + ".dir"
	lanes := "8 at most"
	_, err := openSM(ctx, twin, ibsim.OpenSMConfig{
		Engine: name + ",no_fallback", Flags: 0x47, Dir: dir, Options: qos, Timeout: layeredTimeout,
		Line: func(l ibsim.LogLine) {
			if m := lanesNeeded.FindStringSubmatch(l.Message); m != nil {
				lanes = m[1]
			}
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "  %-32s VLs %s\n", "OpenSM "+name, lanes)
	return os.Rename(filepath.Join(dir, "opensm-lfts.dump"), file)
}
