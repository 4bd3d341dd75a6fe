// Package diff compares two states of a subnet: what changed, whom it affects,
// and what can happen while a subnet manager writes the change switch by
// switch.
// It makes no promise to other modules.
//
// Nodes are matched by GUID and ports by number, forwarding entries by the end
// port that they lead to: a new LID of a port is a difference of LIDs alone.
//
// OpenSM writes linear forwarding tables switch by switch, in blocks of 64 LIDs
// (osm_ucast_mgr_set_fwd_tables). Until it is done a packet can meet old entries
// on some switches and new ones on others. Compare therefore looks at all
// mixtures at once: the graph that has, for a LID, the old and the new next hop
// of every switch.
package diff

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
)

// Snapshot is one state of a subnet. What is nil is not known, and is not
// compared.
type Snapshot struct {
	Name   string // for people
	Fabric *fabric.Fabric
	Tables *lft.Tables
	// SL2VL and PathSLs are as in verify.Options: tables without SL2VL are
	// on one VL, and without PathSLs any path may have any SL.
	SL2VL   *lft.SL2VL
	PathSLs *lft.PathSLs
	// UnknownSLs says that nil PathSLs are not known, as in verify.Options: credit loops that
	// only paths with some SLs have are undecided.
	UnknownSLs bool
	// Multicast is the multicast tables, and the trees that they are made of
	// where those are known.
	Multicast *mft.Plan
	// Adaptive is the choices of adaptive switches. Pairs and Transition are about Tables alone.
	Adaptive *adaptive.Tables
	// Unread says of each switch, by NodeID, that its tables could not be read, which drift
	// reports and Compare does not look at. Nil stands for none.
	Unread []bool
}

// maxWitnesses bounds the loops that are shown of each kind, and mostAffected the lists of the
// ports that are affected most. All are counted.
const (
	maxWitnesses = 16
	mostAffected = 10
)

// comparison is what all parts of Compare share.
type comparison struct {
	*match
	a, b    *Snapshot
	worst   int // bounds the lists of the ports that are affected most
	targets []target
	r       *Result
}

// Compare says what is different in b, the new state, from a, the old one.
//
// It takes O(switches x LIDs) time, never per pair of ports; where SL-to-VL
// tables tell VLs apart, that times the SLs that behave differently. Errors:
// snapshots without a fabric, tables that are not of their fabric, and ctx's
// error when that ends first.
func Compare(ctx context.Context, a, b *Snapshot) (*Result, error) {
	return compareStates(ctx, a, b, mostAffected)
}

// compareStates is Compare with another bound of the lists of ports that are affected most.
func compareStates(ctx context.Context, a, b *Snapshot, worst int) (*Result, error) {
	for _, s := range []*Snapshot{a, b} {
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	c := &comparison{match: matchNodes(a.Fabric, b.Fabric), a: a, b: b, worst: worst, r: newResult(a, b)}
	c.compareNodes()
	c.compareLinks()
	c.compareLIDs()
	c.targets = c.findTargets()
	if a.Tables != nil && b.Tables != nil {
		if err := c.compareEntries(ctx); err != nil {
			return nil, err
		}
		if err := c.comparePairs(ctx); err != nil {
			return nil, err
		}
	}
	if a.SL2VL != nil && b.SL2VL != nil {
		c.compareLanes()
	}
	if a.PathSLs != nil && b.PathSLs != nil {
		c.comparePathSLs()
	}
	if a.Tables != nil && b.Tables != nil {
		if err := c.findTransition(ctx); err != nil {
			return nil, err
		}
	}
	if a.Multicast != nil && b.Multicast != nil {
		if err := c.compareMulticast(ctx); err != nil {
			return nil, err
		}
	}
	if a.Adaptive != nil && b.Adaptive != nil {
		if err := c.compareChoices(ctx); err != nil {
			return nil, err
		}
	}
	c.r.addFindings()
	return c.r, nil
}

// Check returns an error if the parts of a snapshot do not belong together.
func (s *Snapshot) Check() error {
	switch f := s.Fabric; {
	case f == nil:
		return errors.New("nothing can be compared without a fabric")
	case s.Tables != nil && s.Tables.Switches() != f.NumSwitches():
		return fmt.Errorf("%s: tables of %d switches for a fabric of %d", s.Name, s.Tables.Switches(), f.NumSwitches())
	case s.SL2VL != nil && s.SL2VL.Fabric().NumPorts() != f.NumPorts():
		return fmt.Errorf("%s: SL-to-VL tables of another fabric", s.Name)
	case s.PathSLs != nil && s.PathSLs.Switches() != f.NumSwitches():
		return fmt.Errorf("%s: path SLs from %d switches for a fabric of %d", s.Name, s.PathSLs.Switches(), f.NumSwitches())
	case s.Multicast != nil && s.Multicast.Tables.Fabric().NumPorts() != f.NumPorts():
		return fmt.Errorf("%s: multicast tables of another fabric", s.Name)
	case s.Unread != nil && len(s.Unread) != f.NumSwitches():
		return fmt.Errorf("%s: %d switches read or not, of %d", s.Name, len(s.Unread), f.NumSwitches())
	}
	if s.Adaptive != nil {
		if err := s.Adaptive.Check(s.Fabric); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}
