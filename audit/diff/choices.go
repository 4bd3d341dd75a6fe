package diff

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/verify"
)

// compareChoices compares the ports that adaptive switches may choose, switch
// by switch. It does not check states during the change: how a subnet manager
// writes groups of ports is not public.
func (c *comparison) compareChoices(ctx context.Context) error {
	d := &ChoiceChanges{Switches: []ChoiceChange{}}
	c.r.Adaptive = d
	x, y := c.a.Adaptive, c.b.Adaptive
	results := make([]ChoiceChange, c.New.NumSwitches())
	err := par.ForEach(ctx, 0, len(results), func(i int) error {
		s := fabric.NodeID(i)
		was := c.Back[s]
		if was == fabric.NoNode {
			return nil
		}
		r := &results[i]
		r.SwitchRef = verify.SwitchOf(c.New, s)
		for plft := range max(len(x.PLFTs), len(y.PLFTs)) {
			for _, t := range c.targets {
				old, new := x.Choice(plft, was, t.old), y.Choice(plft, s, t.new)
				if old == new || plft == 0 && old.Ports.Len() < 2 && new.Ports.Len() < 2 { // static
					continue
				}
				r.Changed++
				both := old.Ports
				both.Union(new.Ports)
				switch {
				case old.Ports == new.Ports:
				case both == new.Ports:
					r.Wider++
				case both == old.Ports:
					r.Narrower++
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		d.Changed, d.Wider, d.Narrower = d.Changed+r.Changed, d.Wider+r.Wider, d.Narrower+r.Narrower
	}
	d.Switches = append(d.Switches, slices.DeleteFunc(results, func(r ChoiceChange) bool { return r.Changed == 0 })...)
	return nil
}
