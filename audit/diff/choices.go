package diff

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// choice is what an adaptive switch may do with packets.
type choice struct {
	state adaptive.State // Static where there is one port at most
	ports adaptive.PortSet
}

// choiceAt is the choice of a switch, in a private LFT that the tables need not have.
func choiceAt(t *adaptive.Tables, plft int, s fabric.NodeID, lid fabric.LID) (c choice) {
	if plft >= len(t.PLFTs) || lid > t.PLFTs[plft].Ports.MaxLID() {
		return c
	}
	if c.ports = t.Choices(plft, s, lid); c.ports.Len() > 1 {
		c.state, _ = t.PLFTs[plft].At(s, lid)
	}
	return c
}

// made is the choice for people.
func (c choice) made() Choice {
	m := Choice{State: c.state.String(), Ports: []int{}}
	c.ports.Each(func(p fabric.PortNum) { m.Ports = append(m.Ports, int(p)) })
	return m
}

// compareChoices compares what adaptive switches may do, switch by switch. What a change of
// choices does on the way is not looked at: nobody knows how a subnet manager writes groups.
func (c *comparison) compareChoices(ctx context.Context) error {
	d := &ChoiceChanges{Switches: []ChoiceChange{}}
	c.r.Adaptive = d
	x, y := c.a.Adaptive, c.b.Adaptive
	results := make([]ChoiceChange, c.new.NumSwitches())
	err := par.ForEach(ctx, c.opt.Workers, len(results), func(i int) error {
		s := fabric.NodeID(i)
		was := c.back[s]
		if was == fabric.NoNode {
			return nil
		}
		type change struct {
			plft     int
			old, new choice
		}
		r := &results[i]
		r.Switch, r.Name = c.new.Node(s).GUID, c.new.Name(s)
		at := map[change]int{} // in r.Sets
		for plft := range max(len(x.PLFTs), len(y.PLFTs)) {
			for _, t := range c.targets {
				ch := change{plft, choiceAt(x, plft, was, t.old), choiceAt(y, plft, s, t.new)}
				if ch.old == ch.new || ch.old.ports.Len() < 2 && ch.new.ports.Len() < 2 { // of linear tables
					continue
				}
				k, known := at[ch]
				if !known {
					k = len(r.Sets)
					at[ch] = k
					r.Sets = append(r.Sets, SetChange{PLFT: plft, Old: ch.old.made(), New: ch.new.made()})
				}
				r.Sets[k].LIDs = append(r.Sets[k].LIDs, t.new)
				r.Changed++
				both := ch.old.ports
				both.Union(ch.new.ports)
				switch {
				case ch.old.ports == ch.new.ports:
				case both == ch.new.ports:
					r.Wider++
				case both == ch.old.ports:
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
