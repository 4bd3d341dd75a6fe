package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
)

// incremental has things fail in a fat tree of three levels and come back, one at a
// time, and prints how long it takes to route and to verify that with the last result in
// memory, and what a subnet manager has to write then.
func (b *bench) incremental(ctx context.Context, radix string) error {
	whole, k, e, err := fatTree(radix, gen.Options{})
	if err != nil {
		return err
	}
	compile.TuneGC() // as the programs do that keep tables
	var c compile.Incremental
	start := time.Now()
	base, _, err := c.Run(ctx, whole, e, compile.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\nupdn, then a failure, radix %d: %d switches, %d LIDs; from scratch %.0f ms, routed and verified\n",
		k, whole.NumSwitches(), whole.MaxLID(), ms(time.Since(start)))
	c.Wait()
	fmt.Fprintf(b.out, "%-22s %28s %8s %8s %8s\n", "", "ms, median (least to most)", "LIDs", "entries", "blocks")
	for _, x := range gen.FatTreeFailures(whole, k) {
		damaged, err := gen.Remaining(whole, x.Cables...)
		if err != nil {
			return err
		}
		var took [2][]time.Duration
		var steps [2]compile.Step
		last := base
		for range b.runs {
			for i, g := range []*fabric.Fabric{damaged, whole} {
				start := time.Now()
				r, step, err := c.Run(ctx, g, e, compile.Options{})
				took[i] = append(took[i], time.Since(start))
				if err != nil {
					return err
				}
				if !step.Kept || !step.ByChange || r.Verify.Verdict != "clean" {
					return fmt.Errorf("%s: %+v, verdict %s", x.Name, step, r.Verify.Verdict)
				}
				steps[i] = step
				if last != base {
					c.Recycle(last.Routing)
				}
				last = r
			}
		}
		base = last
		for i, what := range []string{" fails", " returns"} {
			fmt.Fprintf(b.out, "%-22s %28s %8d %8d %8d\n", x.Name+what,
				spread(took[i]), steps[i].LIDs, steps[i].Changes.Entries, steps[i].Changes.Blocks)
		}
	}
	return nil
}
