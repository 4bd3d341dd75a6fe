package lft

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

const (
	// NumSLs is how many service levels there are (IBA 7.6.5).
	NumSLs = 16
	// MaxDataVLs is how many virtual lanes carry data; VL15 is for subnet management alone
	// (IBA 7.6.4).
	MaxDataVLs = 15
	// DropVL in an SL-to-VL map drops the packet (IBA 7.6.6).
	DropVL fabric.VL = 15
)

// VLMap is one SL-to-VL mapping table (IBA 14.2.5.8): the VL by SL, 0 to 15, where DropVL
// discards the packet.
type VLMap [NumSLs]fabric.VL

// IdentityVLs maps SL s to VL s modulo vls, the number of data VLs, 1 to MaxDataVLs.
func IdentityVLs(vls int) VLMap {
	var m VLMap
	for sl := range m {
		m[sl] = fabric.VL(sl % vls)
	}
	return m
}

// ConstantVL maps all SLs to v.
func ConstantVL(v fabric.VL) VLMap {
	return VLMap(slices.Repeat([]fabric.VL{v}, NumSLs))
}

// VLs returns the greatest data VL that m maps an SL to, plus 1.
func (m *VLMap) VLs() (n int) {
	for _, v := range m {
		if v != DropVL {
			n = max(n, int(v)+1)
		}
	}
	return n
}

// SL2VL holds the SL-to-VL mapping tables of a whole fabric. A switch has one for each pair
// of an input port, its own port 0 included, and an output port; a CA or router has one for
// each port. Equal maps are stored once.
type SL2VL struct {
	fab   *fabric.Fabric
	start []int32  // by PortID of the output port: the start of its row in index
	index []uint16 // by output port and number of the input port: index in maps
	maps  []VLMap
	known map[VLMap]uint16
	last  uint16 // index in maps of the last Set
}

// NewSL2VL gives every port of f the map m.
func NewSL2VL(f *fabric.Fabric, m VLMap) *SL2VL {
	s := &SL2VL{
		fab:   f,
		start: make([]int32, f.NumPorts()+1),
		maps:  []VLMap{m},
		known: map[VLMap]uint16{m: 0},
	}
	n := int32(0)
	for p := range fabric.PortID(f.NumPorts()) {
		s.start[p] = n
		n += int32(s.countInputs(f.Owner(p)))
	}
	s.start[f.NumPorts()] = n
	s.index = make([]uint16, n)
	return s
}

// countInputs returns the number of input ports: 1 for CAs and routers, whose tables do not
// depend on it.
func (s *SL2VL) countInputs(n fabric.NodeID) int {
	if s.fab.IsSwitch(n) {
		return int(s.fab.Node(n).NumPorts) + 1
	}
	return 1
}

// Fabric returns the fabric that the tables are for.
func (s *SL2VL) Fabric() *fabric.Fabric { return s.fab }

// At returns the map for packets that come in by port in of a switch, 0 for its own
// packets, and leave by its port out. For a port out of a CA or router, in is ignored.
func (s *SL2VL) At(in fabric.PortNum, out fabric.PortID) *VLMap {
	return &s.maps[s.index[s.indexOf(in, out)]]
}

// Index returns the number in Maps of the map that At returns.
func (s *SL2VL) Index(in fabric.PortNum, out fabric.PortID) uint16 {
	return s.index[s.indexOf(in, out)]
}

// Maps lists the different maps; some may not be in use. The caller must not change the
// list, which is valid until the next Set.
func (s *SL2VL) Maps() []VLMap { return s.maps }

// Set sets the map that At returns. A fabric has at most 65,536 different maps.
func (s *SL2VL) Set(in fabric.PortNum, out fabric.PortID, m VLMap) {
	// Mostly m is the map of the last call.
	if s.maps[s.last] != m {
		i, ok := s.known[m]
		if !ok {
			if len(s.maps) > 0xffff {
				panic("lft: more than 65536 different SL-to-VL maps")
			}
			i = uint16(len(s.maps))
			s.maps = append(s.maps, m)
			s.known[m] = i
		}
		s.last = i
	}
	s.index[s.indexOf(in, out)] = s.last
}

// SetOut sets the map of an output port for all input ports.
func (s *SL2VL) SetOut(out fabric.PortID, m VLMap) {
	s.Set(0, out, m)
	row := s.index[s.start[out]:s.start[out+1]]
	text.Fill(row, row[0])
}

func (s *SL2VL) indexOf(in fabric.PortNum, out fabric.PortID) int32 {
	at := s.start[out]
	if s.start[out+1]-at == 1 {
		return at
	}
	if at+int32(in) >= s.start[out+1] {
		panic(fmt.Sprintf("lft: no port %d on the switch of %s", in, s.fab.PortName(out)))
	}
	return at + int32(in)
}

// VLs returns the greatest data VL that any port with a cable maps an SL to, plus 1.
func (s *SL2VL) VLs() int {
	used := make([]bool, len(s.maps))
	for p := range fabric.PortID(s.fab.NumPorts()) {
		if s.fab.Peer(p) == fabric.NoPort {
			continue
		}
		for _, i := range s.index[s.start[p]:s.start[p+1]] {
			used[i] = true
		}
	}
	n := 0
	for i := range s.maps {
		if used[i] {
			n = max(n, s.maps[i].VLs())
		}
	}
	return n
}

// Equal returns true if s and t map alike at every port.
func (s *SL2VL) Equal(t *SL2VL) bool {
	if !slices.Equal(s.start, t.start) {
		return false
	}
	for i := range s.index {
		if s.maps[s.index[i]] != t.maps[t.index[i]] {
			return false
		}
	}
	return true
}

// Clone copies the tables.
func (s *SL2VL) Clone() *SL2VL {
	t := *s
	t.index, t.maps, t.known = slices.Clone(s.index), slices.Clone(s.maps), maps.Clone(s.known)
	return &t
}

// UnknownSL is the SL of a path whose SL is not known: it may be any.
const UnknownSL fabric.SL = 0xff

// PathSLs holds the SL of every path, by destination LID and the switch of the source port.
// Switches with the same SLs may share a row. Single source ports, also port 0 of a switch,
// may have a row of their own.
type PathSLs struct {
	maxLID fabric.LID
	row    []int32 // by switch: index in rows
	rows   []slRow
	ports  map[fabric.PortID]int32 // source ports with other SLs than their switch: index in rows
}

// slRow holds SLs by LID: given as set, and plain with SL 0 instead of UnknownSL. Both are
// the same slice if all SLs are known.
type slRow struct{ given, plain []fabric.SL }

func newSLRow(row []fabric.SL) slRow {
	if !slices.Contains(row, UnknownSL) {
		return slRow{row, row}
	}
	plain := slices.Clone(row)
	for l, sl := range plain {
		if sl == UnknownSL {
			plain[l] = 0
		}
	}
	return slRow{row, plain}
}

// NewPathSLs gives all paths SL 0.
func NewPathSLs(switches int, maxLID fabric.LID) *PathSLs {
	return &PathSLs{
		maxLID: maxLID,
		row:    make([]int32, switches),
		rows:   []slRow{newSLRow(make([]fabric.SL, int(maxLID)+1))},
	}
}

// UnknownPathSLs gives all paths UnknownSL.
func UnknownPathSLs(switches int, maxLID fabric.LID) *PathSLs {
	p := NewPathSLs(switches, maxLID)
	p.rows[0] = newSLRow(slices.Repeat([]fabric.SL{UnknownSL}, int(maxLID)+1))
	return p
}

// Row returns the SLs of the paths from switch s by LID, MaxLID+1 of them, 0 if unknown. It
// is for callers that ignore ports with a row of their own. They must not change it:
// switches may share it.
func (p *PathSLs) Row(s fabric.NodeID) []fabric.SL { return p.rows[p.row[s]].plain }

// Given is Row with UnknownSL for unknown SLs.
func (p *PathSLs) Given(s fabric.NodeID) []fabric.SL { return p.rows[p.row[s]].given }

// SetRow sets the SLs of the paths from these switches, by LID. It keeps row.
func (p *PathSLs) SetRow(row []fabric.SL, switches ...fabric.NodeID) {
	at := p.add(row)
	for _, s := range switches {
		p.row[s] = at
	}
}

// SetPorts sets the SLs of the paths from single source ports of CAs, routers or port 0 of
// switches, which then ignore the row of their switch. It keeps row.
func (p *PathSLs) SetPorts(row []fabric.SL, ports ...fabric.PortID) {
	at := p.add(row)
	if p.ports == nil && len(ports) > 0 {
		p.ports = make(map[fabric.PortID]int32)
	}
	for _, port := range ports {
		p.ports[port] = at
	}
}

func (p *PathSLs) add(row []fabric.SL) int32 {
	if len(row) != int(p.maxLID)+1 {
		panic(fmt.Sprintf("lft: %d path SLs for LIDs up to %d", len(row), p.maxLID))
	}
	p.rows = append(p.rows, newSLRow(row))
	return int32(len(p.rows) - 1)
}

// On returns the SLs for a larger number of switches and LIDs up to maxLID, at least p's.
// node and port map p's switches and source ports to new ones, or to NoNode and NoPort. All
// other SLs are 0.
func (p *PathSLs) On(switches int, maxLID fabric.LID, node func(fabric.NodeID) fabric.NodeID, port func(fabric.PortID) fabric.PortID) *PathSLs {
	q := NewPathSLs(switches, maxLID)
	for _, row := range p.rows {
		q.add(slices.Concat(row.given, make([]fabric.SL, maxLID-p.maxLID)))
	}
	for s, at := range p.row {
		if to := node(fabric.NodeID(s)); to != fabric.NoNode {
			q.row[to] = at + 1
		}
	}
	q.ports = make(map[fabric.PortID]int32, len(p.ports))
	for source, at := range p.ports {
		if to := port(source); to != fabric.NoPort {
			q.ports[to] = at + 1
		}
	}
	return q
}

// Ports lists the source ports with a row of their own, ascending.
func (p *PathSLs) Ports() []fabric.PortID { return slices.Sorted(maps.Keys(p.ports)) }

// PortRow returns the SLs of a source port with a row of its own, with UnknownSL for
// unknown ones; nil if its switch's row holds.
func (p *PathSLs) PortRow(port fabric.PortID) []fabric.SL {
	if i, ok := p.ports[port]; ok {
		return p.rows[i].given
	}
	return nil
}

// SL returns the SL of the path from a source port on switch s to a LID, 0 if unknown.
func (p *PathSLs) SL(source fabric.PortID, s fabric.NodeID, lid fabric.LID) fabric.SL {
	if i, ok := p.ports[source]; ok {
		return p.rows[i].plain[lid]
	}
	return p.Row(s)[lid]
}

// InUse counts the different known SLs of the paths to the LIDs of f.
func (p *PathSLs) InUse(f *fabric.Fabric) int {
	used := map[fabric.SL]bool{}
	rows := slices.AppendSeq(slices.Clone(p.row), maps.Values(p.ports))
	slices.Sort(rows)
	for _, i := range slices.Compact(rows) {
		for lid, sl := range p.rows[i].given {
			if f.LIDPort(fabric.LID(lid)) != fabric.NoPort && sl != UnknownSL {
				used[sl] = true
			}
		}
	}
	return len(used)
}

// Switches returns the number of switches.
func (p *PathSLs) Switches() int { return len(p.row) }

// MaxLID returns the highest LID that rows have an SL for.
func (p *PathSLs) MaxLID() fabric.LID { return p.maxLID }

// PathSLsFrom makes path SLs from rows of single source ports, by LID, with UnknownSL for
// unknown SLs. Ports without a row have unknown SLs. Ports of a switch share a row if they
// agree, except in the SLs to their own LIDs.
func PathSLsFrom(f *fabric.Fabric, rows map[fabric.PortID][]fabric.SL) *PathSLs {
	p := UnknownPathSLs(f.NumSwitches(), f.MaxLID())
	type base struct {
		row   []fabric.SL
		first fabric.PortID // row lacks the SLs to its own LIDs; NoPort if none are lacking
	}
	bases := make([]base, f.NumSwitches())
	var without []fabric.PortID
	add := func(port fabric.PortID, s fabric.NodeID) {
		row, b := rows[port], &bases[s]
		switch {
		case row == nil && b.row != nil:
			without = append(without, port)
			return
		case row == nil:
			return // its SLs are unknown, as those of the switch
		case b.row == nil:
			*b = base{slices.Clone(row), port}
			return
		}
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			if to := f.LIDPort(l); row[l] != b.row[l] && to != fabric.NoPort && to != port && to != b.first {
				p.SetPorts(row, port)
				return
			}
		}
		for l := fabric.LID(1); b.first != fabric.NoPort && l <= f.MaxLID(); l++ {
			if f.LIDPort(l) == b.first {
				b.row[l] = row[l]
			}
		}
		b.first = fabric.NoPort
	}
	// Ports with rows come first, as they set the switch's row; ports of CAs before port 0.
	for _, known := range []bool{true, false} {
		for i, port := range f.CAPorts() {
			if s := f.CASwitches()[i]; s != fabric.NoNode && (rows[port] != nil) == known {
				add(port, s)
			}
		}
		for _, s := range f.Switches() {
			if port := f.PortBase(s); (rows[port] != nil) == known {
				add(port, s)
			}
		}
	}
	for s := range bases {
		if bases[s].row != nil {
			p.SetRow(bases[s].row, fabric.NodeID(s))
		}
	}
	if len(without) > 0 {
		p.SetPorts(slices.Repeat([]fabric.SL{UnknownSL}, int(f.MaxLID())+1), without...)
	}
	return p
}
