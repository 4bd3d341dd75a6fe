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
	// MaxDataVLs is how many virtual lanes carry data; VL15 is for subnet
	// management alone (IBA 7.6.4).
	MaxDataVLs = 15
	// DropVL in an SL-to-VL map drops the packet (IBA 7.6.6).
	DropVL fabric.VL = 15
)

// VLMap is one SL-to-VL mapping table (IBA 14.2.5.8): the VL by SL, each 0 to
// 15, where DropVL discards the packet.
type VLMap [NumSLs]fabric.VL

// IdentityVLs maps each SL to the VL of its number, modulo vls, the number of
// data VLs, 1 to MaxDataVLs.
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

// VLs is one more than the greatest data VL that m maps an SL to.
func (m *VLMap) VLs() (n int) {
	for _, v := range m {
		if v != DropVL {
			n = max(n, int(v)+1)
		}
	}
	return n
}

// SL2VL is the SL-to-VL mapping tables of a whole fabric. A switch has one for
// each port that a packet may come in by, its own port 0 included, and each
// port that it may leave by; a CA or router has one for each of its ports. A
// map that occurs often is stored once.
type SL2VL struct {
	fab   *fabric.Fabric
	start []int32  // by PortID of the output port: where its row of index begins
	index []uint16 // by output port and number of the input port: index in maps
	maps  []VLMap
	known map[VLMap]uint16
	last  uint16 // index in maps of what Set had before
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

// countInputs counts the ports that a packet may come in by: one for CAs and routers,
// whose tables do not depend on it.
func (s *SL2VL) countInputs(n fabric.NodeID) int {
	if s.fab.IsSwitch(n) {
		return int(s.fab.Node(n).NumPorts) + 1
	}
	return 1
}

// Fabric is the fabric whose ports the tables are of.
func (s *SL2VL) Fabric() *fabric.Fabric { return s.fab }

// At is the map for packets that come in by port in of a switch, 0 for its own,
// and leave by port out of the same switch. For a port out of a CA or router,
// in is not used.
func (s *SL2VL) At(in fabric.PortNum, out fabric.PortID) *VLMap {
	return &s.maps[s.index[s.indexOf(in, out)]]
}

// Index is the number of the map At returns among Maps.
func (s *SL2VL) Index(in fabric.PortNum, out fabric.PortID) uint16 {
	return s.index[s.indexOf(in, out)]
}

// Maps lists the different maps, some of which may not be in use. The caller must not
// change it; it is valid until the next Set.
func (s *SL2VL) Maps() []VLMap { return s.maps }

// Set changes what At returns. A fabric has at most 65,536 different maps.
func (s *SL2VL) Set(in fabric.PortNum, out fabric.PortID, m VLMap) {
	// Mostly it is the map of the call before.
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

// VLs is one more than the greatest data VL that any port with a cable maps an
// SL to.
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

// UnknownSL in path SLs stands for a path of unknown SL: it may have any.
const UnknownSL fabric.SL = 0xff

// PathSLs is the SL of every path: by the switch that the source port hangs on
// and the destination LID. Switches with the same SLs may share a row. Single source
// ports, port 0 of a switch among them, may have a row of their own.
type PathSLs struct {
	maxLID fabric.LID
	row    []int32 // by switch: index in rows
	rows   []slRow
	ports  map[fabric.PortID]int32 // source ports with other SLs than their switch: index in rows
}

// slRow is SLs by LID: as they were given, and with SL 0 for UnknownSL, which are the
// same slice where all are known.
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

// UnknownPathSLs gives no path an SL.
func UnknownPathSLs(switches int, maxLID fabric.LID) *PathSLs {
	p := NewPathSLs(switches, maxLID)
	p.rows[0] = newSLRow(slices.Repeat([]fabric.SL{UnknownSL}, int(maxLID)+1))
	return p
}

// Row gives the SLs of the paths from switch s, by LID, of length MaxLID+1, with SL 0 for
// unknown ones. It is for callers that ignore ports with a row of their own. The caller
// must not change it: other switches may share it.
func (p *PathSLs) Row(s fabric.NodeID) []fabric.SL { return p.rows[p.row[s]].plain }

// Given is Row with UnknownSL for paths whose SL is not known.
func (p *PathSLs) Given(s fabric.NodeID) []fabric.SL { return p.rows[p.row[s]].given }

// SetRow gives the paths from the switches the SLs of row, which it keeps.
func (p *PathSLs) SetRow(row []fabric.SL, switches ...fabric.NodeID) {
	at := p.add(row)
	for _, s := range switches {
		p.row[s] = at
	}
}

// SetPorts gives the paths from source ports, of CAs, routers or port 0 of switches,
// SLs of their own, whatever the row of their switch. It keeps row.
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

// On is the SLs from other switches, up to maxLID, which is no lower than p's: node and port
// find those of p among them, NoNode and NoPort for none. All other SLs are 0.
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

// PortRow is the row of a source port of its own, with UnknownSL for paths whose SL is
// not known; nil where that of its switch holds.
func (p *PathSLs) PortRow(port fabric.PortID) []fabric.SL {
	if i, ok := p.ports[port]; ok {
		return p.rows[i].given
	}
	return nil
}

// SL returns the SL of the path from a source port on switch s to a LID, 0 if it is not
// known.
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

// Switches is the number of switches.
func (p *PathSLs) Switches() int { return len(p.row) }

// MaxLID is the highest LID that a row has an SL for.
func (p *PathSLs) MaxLID() fabric.LID { return p.maxLID }

// PathSLsFrom combines the SLs of paths from single source ports, given by LID; UnknownSL stands for
// an unknown SL. Ports without a row have unknown SLs. Ports of a switch
// that agree, except in the SLs to their own LIDs, share its row.
func PathSLsFrom(f *fabric.Fabric, rows map[fabric.PortID][]fabric.SL) *PathSLs {
	p := UnknownPathSLs(f.NumSwitches(), f.MaxLID())
	type base struct {
		row   []fabric.SL
		first fabric.PortID // whose own LIDs are not in row yet; NoPort when they are
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
			return // as the switch
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
	// Ports with rows first, as they determine the row of the switch; ports of CAs before port 0.
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
