package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/compare"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
)

// damage is what compare --damage takes away.
type damage struct {
	kind     string // of damages, "" for none
	percents []float64
	samples  int
}

// flags defines the flags of --damage.
func (d *damage) flags(flags *pflag.FlagSet) {
	cli.WordFlag(flags, &d.kind, "damage", "compare on fabrics of which random `PARTS` are gone: cables or switches", "cables", "switches")
	d.percents = []float64{1, 3, 5, 10}
	cli.ListFlag(flags, &d.percents, "percent", "1,3,5,10", "how many are gone, in percent, `P,..`", func(item string) ([]float64, error) {
		percent, ok := cli.ParseNumber[float64](item)
		if !ok || !(percent > 0 && percent <= 100) {
			return nil, errors.New("want more than 0, and at most 100")
		}
		return []float64{percent}, nil
	})
	d.samples = 10
	cli.NumberFlag(flags, &d.samples, "samples", 1, cli.MaxNumber, "fabrics for each percentage, `N`")
}

// parse sees that the flags make sense.
func (d *damage) parse(c *contest) error {
	switch {
	case d.kind == "":
		return nil
	case len(c.lfts) > 0:
		return usagef("--lfts has tables of the whole fabric: --damage is for engines only")
	case len(c.roots) > 0:
		return usagef("--roots: they may be gone with --damage")
	}
	return nil
}

// compareDamaged runs compare --damage.
func (a *app) compareDamaged(ctx context.Context, c *contest, f *fabric.Fabric, opt compile.Options) error {
	c.quality.Whole = f
	d, err := compare.Damage(version, c.damage.kind, f, c.damage.percents, c.damage.samples, c.quality.Seed, func(g *fabric.Fabric) (*compare.Standings, error) {
		s := &compare.Standings{Version: version}
		if err := a.contendByEngines(ctx, c, s, g, opt); err != nil {
			return nil, err
		}
		if err := s.With(c.against); err != nil {
			return nil, cli.NewUsageError(err)
		}
		return s, nil
	})
	if is[*compare.DamageError](err) {
		return inputf("%s: %w", c.topology, err)
	}
	if err != nil {
		return err
	}
	if err := c.Print(a.stdout, d, d.Text); err != nil {
		return err
	}
	for _, l := range d.Levels {
		for _, s := range l.Samples {
			if err := c.checkAll(s.Standings); err != nil {
				return err
			}
		}
	}
	return nil
}
