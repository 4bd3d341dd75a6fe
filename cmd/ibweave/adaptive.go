package main

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

// choosing is what an audit has of adaptive routing.
type choosing struct {
	far         string // "" for none
	plft        string // "" for none
	adaptiveToo bool   // the command looks at it
	adaptive    *adaptive.Tables
}

func (c *choosing) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.far, "far", "", "`FILE` of adaptive routing, ibdiagnet's far; its static ports do without --lfts")
	flags.StringVar(&c.plft, "plft", "", "`FILE` that says which private LFT a packet takes, for --far")
}

// hasTables says whether there are forwarding tables, static or adaptive.
func (in *audit) hasTables() bool { return in.lfts != "" || in.far != "" }

// choiceRules are those that rest on adaptive routing.
func choiceRules() []string {
	rules := slices.Clone(verify.UnicastRules)
	for _, r := range multipath.Rules {
		rules = append(rules, r.Name)
	}
	return rules
}

// readChoices reads adaptive routing, and what selects its private LFTs.
func (a *app) readChoices(in *audit, f *fabric.Fabric) (err error) {
	if in.far == "" {
		return nil
	}
	if in.adaptive, err = readDump(a, in, in.far, f, choiceRules(), nil, dump.ReadFAR); err != nil || in.plft == "" {
		return err
	}
	in.adaptive.Select, err = readDump(a, in, in.plft, f, choiceRules(), nil, dump.ReadPLFTMap)
	return err
}

// checkChoices adds to the result of static tables what packets can come to by any choice.
// With several private LFTs no packet needs to take number 0 all the way: what is
// wrong with it alone is not said then.
func (a *app) checkChoices(ctx context.Context, in *audit, x *auditResult) error {
	t := in.adaptive
	if t == nil {
		return nil
	}
	s := a.startStage("verify choices")
	defer s.End()
	if in.lfts != "" {
		x.result.Add(multipath.CompareStatic(x.fabric, t, x.tables, 0)...)
	}
	if len(t.PLFTs) > 1 {
		alone := append(slices.Clone(verify.UnicastRules), verify.LaneRules...)
		x.result.Edit(func(list []verify.Finding) []verify.Finding {
			return slices.DeleteFunc(list, func(f verify.Finding) bool { return slices.Contains(alone, f.Rule) })
		})
	}
	r, err := multipath.Check(ctx, x.fabric, t, multipath.Options{SL2VL: x.options.SL2VL, PathSLs: x.options.PathSLs, UnknownSLs: in.unknownSLs})
	if err != nil {
		return err
	}
	r.AddTo(x.result)
	x.result.Add(multipath.CheckTables(x.fabric, t, 0)...)
	return nil
}
