package main

import (
	"context"
	"crypto/sha256"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// bounding is the flags of check and compile about lower bounds of the load.
type bounding struct {
	rounds int
	write  string // file; "" for none
}

// writeRounds is for how many rounds lengths are sought for a file, unless it is said.
const writeRounds = 200

func (b *bounding) flags(flags *pflag.FlagSet) {
	flags.IntVar(&b.rounds, "bound-iterations", 0, "seek a lower bound of the load for `N` rounds; by default as many as take little time, and 200 with --write-bound; below 0 only cuts are tried")
	flags.StringVar(&b.write, "write-bound", "", "write the proof of the lower bounds of the load into `FILE`, for check --bound")
}

// find looks for bounds of tables, of which r has the load, and writes them. Without tables, and
// where these do not keep to the legal ports of their order, there is no bound for legal ports. The bound of jobs,
// if there is one, is only written.
func (b *bounding) find(ctx context.Context, a *app, tables *lft.Routing, r *verify.Result, jobs *bound.Bound) ([]*bound.Bound, error) {
	s := a.startStage("bound")
	defer s.End()
	opt := bound.Options{Rounds: b.rounds, Load: r.GreatestLoad(), Order: tables.Order}
	if b.write != "" && b.rounds == 0 {
		opt.Rounds = writeRounds
	}
	found, err := bound.Find(ctx, tables.Fabric, opt)
	if err != nil {
		return nil, err
	}
	if found.Legal != nil && !bound.Keeps(tables.Fabric, tables.Tables, tables.Order) {
		found.Legal = nil
	}
	if b.write == "" {
		return found.List(), nil
	}
	var text []byte
	for _, x := range found.List() {
		text = x.Certificate.Append(text)
	}
	if jobs != nil {
		text = jobs.Certificate.Append(text)
	}
	if text == nil {
		return nil, inputf("--write-bound %s: there is no bound, since no cable between switches has routes", b.write)
	}
	return found.List(), a.writeOutput(b.write, text)
}

// checkBounds adds to r how far its load is above the bounds that are found, and those of a file
// that hold.
func (a *app) checkBounds(ctx context.Context, in *audit, tables *lft.Routing, r *verify.Result) error {
	f := tables.Fabric
	var list []*bound.Bound
	if in.bound == "" || in.hasTables() || in.bounding != (bounding{}) {
		var err error
		if list, err = in.bounding.find(ctx, a, tables, r, nil); err != nil {
			return err
		}
	}
	if in.bound != "" {
		proofs, err := readAs(a, in, in.bound, bound.Read)
		if err != nil {
			return err
		}
		for _, c := range proofs {
			err := c.Check(f, in.jobs.demandOf())
			if err != nil {
				r.Add(verify.Finding{Rule: verify.BoundRule, Severity: verify.Error, Message: err.Error(), Count: 1})
				continue
			}
			if rank, err := c.Ranks(f); err == nil && tables.Tables != nil && !bound.Keeps(f, tables.Tables, rank) {
				continue // it is about other tables
			}
			load, _ := c.Bound.Float64()
			if c.Demand != ([sha256.Size]byte{}) {
				in.jobs.prove(f, load, in.bound)
				continue
			}
			list = append(list, &bound.Bound{Load: load, Exact: c.Bound, Unit: max(c.Unit, 1), Words: "proven by " + in.bound, Close: true, Certificate: c})
		}
	}
	r.CompareBounds(list...)
	return nil
}
