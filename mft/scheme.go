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
	// Capacity is how many MLIDs a switch's table has (MulticastFDBCap), from
	// MinMLID on; 0 stands for all there are.
	Capacity int
	// Reserved MLIDs are never given out. MinMLID, that of IPoIB's broadcast
	// group, is reserved unless a group asks for it.
	Reserved []fabric.LID
	// Balance lets schemes that choose their trees divide them over links.
	Balance bool
	// First is the index of the scheme that Fit begins with for a group, by index;
	// nil stands for 0.
	First func(group int) int
	// Yield lets Fit give a group that its first scheme refuses to the next one.
	Yield bool
	// MaxStray is the greatest permitted number of stray copies for each copy to a
	// receiver, on an MLID that groups share, when each of these groups
	// sends one packet. 0 stands for DefaultMaxStray; a negative value permits none.
	MaxStray float64
}

// DefaultMaxStray is a tenth.
const DefaultMaxStray = 0.1

// Scheme makes the multicast tables of groups for a unicast routing. Schemes
// are stateless and safe for concurrent use; the result is the same on any
// number of CPUs.
type Scheme interface {
	// Name is the scheme's name on the command line.
	Name() string
	// Build makes trees for all groups, whose MGIDs and MLIDs it gives out
	// where they are missing. It returns a *RefusedError when a group cannot
	// be exact on the paths of the routing, and ctx's error when that ends
	// first.
	Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error)
}

// RefusedError says that a scheme cannot serve a group, why, and what can.
type RefusedError struct {
	Scheme  string
	Group   string
	Reason  string   // with the witness: switches and ports
	Suggest []string // names of schemes
	// Tried has the reasons of the schemes that Fit tried before, "union-row: reason".
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

// said is the scheme and its reason.
func (e *RefusedError) said() string { return e.Scheme + ": " + e.Reason }
