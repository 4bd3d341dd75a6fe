package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// benchDiscover measures ibweave discover against ibnetdiscover, as whole processes
// on one ibsim, and holds their fabrics against each other. which is a mesh such as
// 16x16, the radix of a fat tree, or a file.
func benchDiscover(ctx context.Context, out io.Writer, which, program string, runs int) error {
	f, err := named(out, which)
	if err != nil {
		return err
	}
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		return err
	}
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer sim.Close()
	var theirs, ours []time.Duration
	for range runs {
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
		t, said, err := whole(ctx, "", program, "discover", "--ibsim", sim.Socket(), "--node", twin.NodeID(ibsim.Centre(twin.Fabric)))
		if err != nil {
			return fmt.Errorf("%s discover: %w\n%s", program, err, said)
		}
		ours = append(ours, t)
		got, err := canonical(program, []byte(said))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: ibweave discover and ibnetdiscover find different fabrics", which)
		}
	}
	row(out, "ibnetdiscover", theirs)
	row(out, "ibweave discover", ours)
	ratio(out, theirs, ours)
	fmt.Fprintf(out, "  %-32s %9d of %d\n", "the same fabric", runs, runs)
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

// named makes or reads a fabric.
func named(out io.Writer, which string) (*fabric.Fabric, error) {
	if _, err := strconv.Atoi(which); err == nil {
		return fatTree(out, which)
	}
	if strings.Trim(which, "0123456789xt") == "" {
		return grid(out, which)
	}
	data, err := os.ReadFile(which)
	if err != nil {
		return nil, err
	}
	f, _, err := topology.Parse(which, data, topology.Options{})
	if err != nil {
		return nil, err
	}
	return withLIDs(out, f, filepath.Base(which))
}
