// Package adaptive holds the tables of adaptive switches: for each LID a set of output
// ports instead of one. It makes no promise to other modules.
//
// A switch has up to 8 or so private LFTs (PLFT). An entry of a PLFT has a static port, a
// state and a group of output ports. A packet's service level and input port select the
// PLFT. Static routing is the special case in which all entries are Static.
package adaptive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// State is how a switch treats packets to a LID.
type State uint8

const (
	Static State = iota // the packet leaves by the static port
	Free                // by the static port or any port of the group, chosen for each packet
	HBF                 // by the static port or the group's port that a hash of the flow selects
)

var stateNames = [...]string{Static: "Static", Free: "Free", HBF: "HBF"}

// String returns the state's name in ibdiagnet's files.
func (s State) String() string { return stateNames[s] }

// ParseState is the inverse of String; false for an unknown name.
func ParseState(s string) (State, bool) {
	i := slices.Index(stateNames[:], s)
	return State(max(i, 0)), i >= 0
}

// PortSet is a set of a switch's ports, 0 to 255.
type PortSet [4]uint64

// Add puts a port into the set.
func (s *PortSet) Add(p fabric.PortNum) { s[p>>6] |= 1 << (p & 63) }

// Has returns true if port p is in the set.
func (s *PortSet) Has(p fabric.PortNum) bool { return s[p>>6]>>(p&63)&1 != 0 }

// Len counts the ports.
func (s *PortSet) Len() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2]) + bits.OnesCount64(s[3])
}

// Union adds the ports of another set.
func (s *PortSet) Union(t PortSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// Each visits the ports in ascending order.
func (s *PortSet) Each(visit func(fabric.PortNum)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(fabric.PortNum(i*64 + bits.TrailingZeros64(word)))
		}
	}
}

// Subgroup is a row of a switch's group table.
type Subgroup struct {
	Number int
	WHBF   int // weight in ibdiagnet's file; 0 if it is missing
	Ports  PortSet
}

// Group is a group of a switch's group table: the ports of all its subgroups.
type Group struct {
	Number    int
	Subgroups []Subgroup
}

// Ports returns the union of the subgroups' ports.
func (g *Group) Ports() (s PortSet) {
	for i := range g.Subgroups {
		s.Union(g.Subgroups[i].Ports)
	}
	return s
}

// MaxGroups is the greatest number of groups in the group table of a switch.
const MaxGroups = 1<<stateShift - 1

// DefaultGroups is how many groups the group table of a switch has by default: 1792, the
// default and limit in NVIDIA's NVOS manual (25.02.4002, "nv action change system profile
// adaptive-routing-groups", 128 to 1792).
const DefaultGroups = 1792

// An entry is packed: its state, above the index of its group in the switch's group table.
const (
	stateShift = 14
	groupMask  = 1<<stateShift - 1
	noGroup    = groupMask
)

// Tables is the adaptive routing of all switches.
type Tables struct {
	// Groups is the group table of each switch, by NodeID; nil for a switch without one.
	Groups [][]Group
	// PLFTs lists the private LFTs by number.
	PLFTs []*PLFT
	// Select gives the PLFT for each packet. It is nil if that is not known, which matters
	// only if there are several PLFTs.
	Select *Selector
}

// PLFT is the private LFTs with the same number on all switches.
type PLFT struct {
	Ports *lft.Tables // the static ports
	// Lacking marks, by NodeID, the switches that have no PLFT of this number; all their
	// entries have NoPath. It is nil if every switch has the PLFT, as for number 0.
	Lacking []bool
	stride  int
	choice  []uint16
}

// NewPLFT makes a PLFT whose entries are all Static, without groups. It keeps ports.
func NewPLFT(ports *lft.Tables) *PLFT {
	stride := int(ports.MaxLID()) + 1
	return &PLFT{Ports: ports, stride: stride, choice: slices.Repeat([]uint16{noGroup}, ports.Switches()*stride)}
}

// Set sets the state of an entry and its group: an index in the switch's group table, or -1
// for no group.
func (p *PLFT) Set(s fabric.NodeID, lid fabric.LID, state State, group int) {
	if group < -1 || group >= MaxGroups {
		panic(fmt.Sprintf("group %d of switch %d: want -1 to %d", group, s, MaxGroups-1))
	}
	p.choice[int(s)*p.stride+int(lid)] = pack(state, group)
}

// pack returns the entry for a state and a group; -1 means no group.
func pack(state State, group int) uint16 {
	return uint16(state)<<stateShift | uint16(group)&groupMask
}

// At returns the state of an entry and its group, -1 for no group.
func (p *PLFT) At(s fabric.NodeID, lid fabric.LID) (state State, group int) {
	e := p.choice[int(s)*p.stride+int(lid)]
	if group = int(e & groupMask); group == noGroup {
		group = -1
	}
	return State(e >> stateShift), group
}

// Row returns the entries of a switch by LID, from 0 to MaxLID. Entries with the same state
// and group are equal.
func (p *PLFT) Row(s fabric.NodeID) []uint16 {
	return p.choice[int(s)*p.stride : int(s+1)*p.stride]
}

// Check returns an error if t cannot be tables of f: the number of switches differs, or an
// entry has a group that its switch lacks.
func (t *Tables) Check(f *fabric.Fabric) error {
	n := f.NumSwitches()
	if len(t.Groups) != n {
		return fmt.Errorf("group tables of %d switches for a fabric of %d", len(t.Groups), n)
	}
	if len(t.PLFTs) == 0 {
		return errors.New("there is no PLFT")
	}
	if t.Select != nil && (len(t.Select.start) != n+1 || len(t.Select.rows) != int(f.PortBase(fabric.NodeID(n)))) {
		return errors.New("the PLFTs are selected for another fabric")
	}
	for k, p := range t.PLFTs {
		if p.Ports.Switches() != n {
			return fmt.Errorf("PLFT %d of %d switches for a fabric of %d", k, p.Ports.Switches(), n)
		}
		if p.Lacking != nil && len(p.Lacking) != n {
			return fmt.Errorf("PLFT %d is lacking on %d switches of a fabric of %d", k, len(p.Lacking), n)
		}
		if err := par.ForEach(context.Background(), 0, n, func(i int) error {
			s := fabric.NodeID(i)
			for lid, e := range p.Row(s) {
				if group := int(e & groupMask); group != noGroup && group >= len(t.Groups[s]) {
					return fmt.Errorf("%s has group %d for LID %d in PLFT %d, and %d groups", f.Name(s), group, lid, k, len(t.Groups[s]))
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// Count counts the entries that are Free and HBF.
func (t *Tables) Count() (free, hbf int64) {
	var n [1 << (16 - stateShift)]int64
	for _, p := range t.PLFTs {
		for _, e := range p.choice {
			n[e>>stateShift]++
		}
	}
	return n[Free], n[HBF]
}

// WithState returns tables in which all entries with a choice of ports have this state.
func (t *Tables) WithState(state State) *Tables {
	out := *t
	out.PLFTs = nil
	for _, p := range t.PLFTs {
		q := NewPLFT(p.Ports)
		q.Lacking = p.Lacking
		for s := range fabric.NodeID(p.Ports.Switches()) {
			for lid := range p.Row(s) {
				if was, group := p.At(s, fabric.LID(lid)); was != Static && group >= 0 {
					q.Set(s, fabric.LID(lid), state, group)
				}
			}
		}
		out.PLFTs = append(out.PLFTs, q)
	}
	return &out
}

// Choices returns the ports by which a packet may leave: the static port and, unless the
// entry is Static, the ports of its group. The set is empty if there is no path.
func (t *Tables) Choices(plft int, s fabric.NodeID, lid fabric.LID) (ports PortSet) {
	p := t.PLFTs[plft]
	if state, group := p.At(s, lid); state != Static && group >= 0 {
		ports = t.Groups[s][group].Ports()
	}
	if static := p.Ports.Row(s)[lid]; static != fabric.NoPath {
		ports.Add(static)
	}
	return ports
}

// Has returns true if a switch has groups, or an entry with a static port or a group.
func (t *Tables) Has(s fabric.NodeID) bool {
	return len(t.Groups[s]) > 0 || slices.ContainsFunc(t.PLFTs, func(p *PLFT) bool { return p.Has(s) })
}

// Lacks reports whether a switch has no PLFT of this number.
func (p *PLFT) Lacks(s fabric.NodeID) bool { return p.Lacking != nil && p.Lacking[s] }

// Has returns true if a switch has an entry with a static port or a group.
func (p *PLFT) Has(s fabric.NodeID) bool {
	for lid := range p.Ports.Row(s) {
		if p.HasEntry(s, fabric.LID(lid)) {
			return true
		}
	}
	return false
}

// HasEntry returns true if an entry has a static port or a group to choose from.
func (p *PLFT) HasEntry(s fabric.NodeID, lid fabric.LID) bool {
	state, _ := p.At(s, lid)
	return p.Ports.Row(s)[lid] != fabric.NoPath || state != Static
}

// Selector gives the PLFT of a packet by switch, input port and SL. Input port 0 stands for
// the switch's own packets.
type Selector struct {
	start []int32 // by switch: its first row
	rows  [][lft.NumSLs]uint8
}

// NewSelector makes a selector that gives PLFT 0 to all packets.
func NewSelector(f *fabric.Fabric) *Selector {
	x := &Selector{start: make([]int32, 0, f.NumSwitches()+1)}
	n := int32(0)
	for _, s := range f.Switches() {
		x.start = append(x.start, n)
		n += int32(f.Node(s).NumPorts) + 1
	}
	x.start = append(x.start, n)
	x.rows = make([][lft.NumSLs]uint8, n)
	return x
}

// Row returns the PLFT numbers by SL for packets that come in by a port.
func (x *Selector) Row(s fabric.NodeID, in fabric.PortNum) *[lft.NumSLs]uint8 {
	return &x.rows[x.start[s]+int32(in)]
}

// PLFT returns the number of a packet's PLFT, 0 for a nil selector.
func (x *Selector) PLFT(s fabric.NodeID, in fabric.PortNum, sl fabric.SL) int {
	if x == nil {
		return 0
	}
	return int(x.Row(s, in)[sl])
}

// Choice is a switch's freedom for packets to one LID. Ports are all ports by which they
// may leave, also the static one.
type Choice struct {
	State State // Static if there is at most one port
	Ports PortSet
}

// Choice returns the choice of an entry. It has no ports if there is no such PLFT or entry.
func (t *Tables) Choice(plft int, s fabric.NodeID, lid fabric.LID) (c Choice) {
	if plft >= len(t.PLFTs) || lid > t.PLFTs[plft].Ports.MaxLID() {
		return c
	}
	if c.Ports = t.Choices(plft, s, lid); c.Ports.Len() > 1 {
		c.State, _ = t.PLFTs[plft].At(s, lid)
	}
	return c
}

// list returns the ports in ascending order.
func (s *PortSet) list() []int {
	list := []int{}
	s.Each(func(p fabric.PortNum) { list = append(list, int(p)) })
	return list
}

// String returns text like "Free 4,5,6", or "no path".
func (c Choice) String() string {
	text := c.State.String()
	separator := " "
	for _, p := range c.Ports.list() {
		text += separator + strconv.Itoa(p)
		separator = ","
	}
	if separator == " " {
		return "no path"
	}
	return text
}

// MarshalJSON writes {"state": "Free", "ports": [4, 5, 6]}.
func (c Choice) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		State string `json:"state"`
		Ports []int  `json:"ports"`
	}{c.State.String(), c.Ports.list()})
}
