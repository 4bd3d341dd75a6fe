package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// lanesNeeded is what dfsssp and lash log.
var lanesNeeded = regexp.MustCompile(`Lanes needed: (\d+)`)

// layered compares the engine layered with OpenSM's engines that use virtual lanes, on
// one fabric: time, lanes, and what the tables are worth. nue may use as many lanes as
// ibsim's ports have.
func (b *bench) layered(ctx context.Context, which string, engines []string) error {
	twin, err := b.twin(which)
	if err != nil {
		return err
	}
	f := twin.Fabric
	dir, file, err := writeTopology(f)
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
	for i, name := range engines {
		if failed[i] {
			continue
		}
		if err := b.theirQuality(ctx, twin, name, filepath.Join(dir, name)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(b.out, "  %-32s %v\n", "OpenSM "+name, err)
		}
	}
	r, err := routeBy(ctx, "layered", f)
	if err != nil {
		return err
	}
	lanes := 1
	if r.PathSLs != nil {
		lanes = 0
		for s := range fabric.NodeID(f.NumSwitches()) {
			for _, sl := range r.PathSLs.Row(s) {
				lanes = max(lanes, int(sl)+1)
			}
		}
	}
	return b.printQuality(ctx, "ibweave layered", strconv.Itoa(lanes), f, r.Tables)
}

// qos is what OpenSM needs for path SLs, and nue for lanes.
var qos = []string{"qos TRUE", "nue_max_num_vls 8"}

// layeredTimeout bounds a run of OpenSM that may have no engine left to take.
const layeredTimeout = 5 * time.Minute

// theirQuality prints what the tables of an engine of OpenSM are worth.
func (b *bench) theirQuality(ctx context.Context, twin *ibsim.Twin, name, dir string) error {
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{Timeout: 5 * time.Minute})
	if err != nil {
		return err
	}
	defer sim.Close()
	lanes := "8 at most"
	_, err = ibsim.RunOpenSM(ctx, sim, ibsim.OpenSMConfig{
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
	file := filepath.Join(dir, "opensm-lfts.dump")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	tables, _, err := dump.ReadLFTs(file, data, twin.Fabric, dump.Options{})
	if err != nil {
		return err
	}
	return b.printQuality(ctx, "OpenSM "+name, lanes, twin.Fabric, tables)
}

func (b *bench) printQuality(ctx context.Context, name, lanes string, f *fabric.Fabric, t *lft.Tables) error {
	q, err := quality.Measure(ctx, f, t, quality.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "  %-32s VLs %s; busiest link %d routes, mean %.1f, Gini %.3f; bisection bandwidth %.4f\n",
		strings.TrimSpace(name), lanes, q.Links.Max, q.Links.Mean, q.Links.Gini, q.Bisection.Mean)
	return nil
}
