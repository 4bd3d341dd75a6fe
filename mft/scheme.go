package mft

import (
	"context"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Options are choices that a caller can make for a scheme.
type Options struct {
	// Capacity is the number of MLIDs in a switch's table (MulticastFDBCap),
	// from MinMLID on; 0 stands for NumMLIDs.
	Capacity int
	// Reserved MLIDs are never given out. MinMLID, of IPoIB's broadcast group,
	// is given only to a group that asks for it.
	Reserved []fabric.LID
	// Balance lets schemes that have a choice of trees spread them over links.
	Balance bool
	// First returns, by index of a group, the index of the scheme at which Fit begins for it; nil
	// stands for 0.
	First func(group int) int
	// Yield lets a group step down in Fit even from its first scheme.
	Yield bool
	// MaxStray is the most stray copies, for each copy to a receiver, that Fit
	// permits on an MLID that groups share, if each group sends one packet. 0
	// stands for DefaultMaxStray; a negative value permits none.
	MaxStray float64
}

// DefaultMaxStray permits one stray copy for ten copies to receivers.
const DefaultMaxStray = 0.1

// Scheme makes the multicast tables of groups for a unicast routing. Schemes
// are stateless and safe for concurrent use; the result is the same on any
// number of CPUs.
type Scheme interface {
	// Name is the scheme's name on the command line.
	Name() string
	// Build makes trees for all groups, and gives MGIDs and MLIDs to groups
	// without. It returns a *RefusedError if the masks of a group cannot be
	// exact on the paths of the routing, and ctx's error if ctx ends first.
	Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error)
}

// RefusedError tells why a scheme cannot serve a group, and which schemes can.
type RefusedError struct {
	Scheme  string
	Group   string
	Reason  string   // names the switches and ports at fault
	Suggest []string // names of schemes that can
	// Tried has the reasons of schemes that refused the group before, as "union-row: reason".
	Tried []string
}

func (e *RefusedError) Error() string {
	if len(e.Tried) > 0 {
		return "no scheme can serve group " + e.Group + ": " + strings.Join(append(slices.Clone(e.Tried), e.said()), "; ")
	}
	s := e.Scheme + " cannot serve group " + e.Group + ": " + e.Reason
	for i, name := range e.Suggest {
		switch {
		case i == 0:
			s += "; use " + name
		default:
			s += " or " + name
		}
	}
	return s
}

// said returns "scheme: reason".
func (e *RefusedError) said() string { return e.Scheme + ": " + e.Reason }
