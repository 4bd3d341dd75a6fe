package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// discover measures ibweave discover against ibnetdiscover, as whole processes on one
// ibsim, and holds their fabrics against each other.
func (b *bench) discover(ctx context.Context, which string) error {
	twin, err := b.twin(ctx, which)
	if err != nil {
		return err
	}
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer sim.Close()
	var theirs, ours []time.Duration
	for range b.runs {
		// Both wait a second for an answer: the machine may be busy.
		var text bytes.Buffer
		cmd := sim.Command(ctx, "ibnetdiscover", "-t", "1000")
		cmd.Stdout = &text
		start := time.Now()
		if err := sim.Run(ctx, cmd); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(start))
		want, err := canonical("ibnetdiscover", text.Bytes())
		if err != nil {
			return err
		}
		t, said, err := whole(ctx, "", b.program, "discover", "--ibsim", sim.Socket(), "--node", twin.NodeID(ibsim.Centre(twin.Fabric)))
		if err != nil {
			return fmt.Errorf("%s discover: %w\n%s", b.program, err, said)
		}
		ours = append(ours, t)
		got, err := canonical(b.program, []byte(said))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: ibweave discover and ibnetdiscover find different fabrics", which)
		}
	}
	b.row("ibnetdiscover", theirs)
	b.row("ibweave discover", ours)
	b.ratio(theirs, ours)
	fmt.Fprintf(b.out, "  %-32s %9d of %d\n", "the same fabric", b.runs, b.runs)
	return nil
}

// canonical is a fabric in our order: nodes, cables, LIDs.
func canonical(name string, text []byte) ([]byte, error) {
	f, _, err := topology.Parse(name, text, topology.Options{})
	if err != nil {
		return nil, err
	}
	return topology.Append(nil, f), nil
}
