package lft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// LIDPolicy says where the LIDs of a fabric come from.
type LIDPolicy uint8

const (
	// KeepLIDs leaves every LID that the topology text or guid2lid gives
	// where it is, and gives the other end ports the lowest free ones, by
	// Node.Order and port number. LIDs of virtual ports stay free.
	KeepLIDs LIDPolicy = iota
	// DenseLIDs forgets all LIDs and numbers the end ports from 1 on:
	// switches by GUID, then the ports of CAs and routers by node GUID and
	// port number, whatever the order of the text.
	DenseLIDs
	// MeshLIDs forgets all LIDs and takes those of LIDOptions.MeshBases, which
	// encode the coordinates of a port on a mesh.
	MeshLIDs
)

// lidPolicies are the names of the command line, by LIDPolicy.
var lidPolicies = [...]string{KeepLIDs: "keep", DenseLIDs: "dense", MeshLIDs: "mesh"}

// String is the policy's name on the command line.
func (p LIDPolicy) String() string {
	if int(p) < len(lidPolicies) {
		return lidPolicies[p]
	}
	return fmt.Sprintf("LID policy %d", uint8(p))
}

// ParseLIDPolicy reads a policy's name.
func ParseLIDPolicy(s string) (LIDPolicy, error) {
	if i := slices.Index(lidPolicies[:], s); i >= 0 {
		return LIDPolicy(i), nil
	}
	return 0, fmt.Errorf("LID policy %q: want one of %v", s, lidPolicies)
}

// LIDRange is a line of OpenSM's guid2lid: the port has the
// LIDs Min to Max.
type LIDRange struct {
	Port     fabric.GUID // port GUID
	Min, Max fabric.LID
}

// KeepLMC as LIDOptions.LMC takes the LMC that the ports have.
const KeepLMC = -1

// LIDOptions are the choices of AssignLIDs.
type LIDOptions struct {
	Policy LIDPolicy
	// LMC is the subnet's, 0 to 7, or KeepLMC: then it is that of the ports
	// which have LIDs already, which must agree, and 0 when there are none.
	// As with OpenSM's option lmc, switches have LMC 0, unless EnhancedPort0 says otherwise.
	LMC int
	// EnhancedPort0 gives enhanced switch ports 0 the LMC as well (OpenSM's
	// lmc_esp0). A base port 0 has LMC 0 always (IBA 14.2.5.6). KeepLMC sets
	// it too when the enhanced ports 0 with LIDs have an LMC.
	EnhancedPort0 bool
	// GUID2LID overrides the LIDs of the topology for KeepLIDs. The LIDs of
	// ports that the fabric does not have stay reserved, as with OpenSM.
	GUID2LID []LIDRange
	// MeshBases is for MeshLIDs: from the LMC of each port it gives the base LID, both by PortID;
	// 0 leaves a port to any free LID.
	MeshBases func(lmc []uint8) ([]fabric.LID, error)
}

// LIDConflictError says that a port cannot keep the LIDs that its source gives
// it, because another port has one of them. LIDs are never moved silently.
type LIDConflictError struct {
	LID  fabric.LID
	A, B fabric.PortID
	msg  string
}

func (e *LIDConflictError) Error() string { return e.msg }

// lidSource says who gave a port its LID.
type lidSource uint8

const (
	fromNone lidSource = iota
	fromText
	fromGUID2LID
	fromMesh
)

func (s lidSource) String() string {
	switch s {
	case fromGUID2LID:
		return "guid2lid"
	case fromMesh:
		return "its place in the mesh"
	}
	return "the topology"
}

// assignment is the state of one AssignLIDs.
type assignment struct {
	f      *fabric.Fabric
	base   []fabric.LID // by PortID
	lmc    []uint8      // by PortID; of ports with a source what the source says, until settled
	source []lidSource  // by PortID
	taken  []bool       // by LID
	next   [fabric.MaxLMC + 1]int
	absent int // LIDs reserved for ports that the fabric does not have
}

// AssignLIDs gives every end port its LIDs and returns the fabric that has
// them, f itself if it has; f is left alone. It takes time linear in ports and LIDs.
//
// Errors: LIDs that cannot be kept (a *LIDConflictError for two ports that
// claim one; a base LID that is not a multiple of 1<<LMC; ports whose LMCs
// differ, when the LMC is to be kept), a guid2lid that contradicts itself or
// names an ambiguous port, and more LIDs wanted than there are.
func AssignLIDs(f *fabric.Fabric, opt LIDOptions) (*fabric.Fabric, error) {
	if opt.LMC != KeepLMC && (opt.LMC < 0 || opt.LMC > fabric.MaxLMC) {
		return nil, fmt.Errorf("LMC %d: want 0 to %d", opt.LMC, fabric.MaxLMC)
	}
	a := &assignment{
		f:      f,
		base:   make([]fabric.LID, f.NumPorts()),
		lmc:    make([]uint8, f.NumPorts()),
		source: make([]lidSource, f.NumPorts()),
		taken:  make([]bool, int(fabric.MaxUnicastLID)+1),
	}
	a.taken[0] = true
	// Read for DenseLIDs too, whose LMC may be the one to keep.
	for p := range a.base {
		if l := f.LID(fabric.PortID(p)); l != 0 {
			a.base[p], a.lmc[p], a.source[p] = l, f.LMC(fabric.PortID(p)), fromText
		}
	}
	if opt.Policy == KeepLIDs {
		if err := a.readRanges(opt.GUID2LID); err != nil {
			return nil, err
		}
	}
	lmc, esp0, err := a.subnetLMC(opt)
	if err != nil {
		return nil, err
	}
	for p := range a.lmc {
		a.lmc[p] = a.portLMC(fabric.PortID(p), lmc, esp0)
	}
	var order []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { order = append(order, p) })
	switch opt.Policy {
	case DenseLIDs:
		clear(a.base)
	case MeshLIDs:
		if err := a.readMeshBases(opt.MeshBases); err != nil {
			return nil, err
		}
		if err := a.claimLIDs(); err != nil {
			return nil, err
		}
	default:
		if err := a.claimLIDs(); err != nil {
			return nil, err
		}
		if err := a.reserveVirtual(); err != nil {
			return nil, err
		}
		order = slices.DeleteFunc(order, func(p fabric.PortID) bool { return a.base[p] != 0 })
		slices.SortFunc(order, func(p, q fabric.PortID) int {
			return cmp.Or(cmp.Compare(f.Node(f.Owner(p)).Order, f.Node(f.Owner(q)).Order), cmp.Compare(p, q))
		})
	}
	for _, p := range order {
		if a.base[p] != 0 {
			continue
		}
		l := a.takeLowestFree(a.lmc[p])
		if l == 0 {
			return nil, a.outOfLIDs(lmc)
		}
		a.base[p] = l
	}
	for p, l := range a.base {
		if l == 0 {
			a.lmc[p] = 0
		}
	}
	if len(f.VirtualLIDs()) == 0 && a.changesNothing() {
		return f, nil
	}
	return f.WithLIDs(a.base, a.lmc)
}

// changesNothing returns true if all ports have the LIDs that they had.
func (a *assignment) changesNothing() bool {
	for p, l := range a.base {
		if q := fabric.PortID(p); l != a.f.LID(q) || a.lmc[p] != a.f.LMC(q) {
			return false
		}
	}
	return true
}

// readRanges takes the LIDs of guid2lid, and reserves those of ports that f does not have.
func (a *assignment) readRanges(ranges []LIDRange) error {
	if len(ranges) == 0 {
		return nil
	}
	byGUID := make(map[fabric.GUID]fabric.PortID, len(ranges))
	for _, r := range ranges {
		if _, dup := byGUID[r.Port]; dup {
			return fmt.Errorf("guid2lid lists port GUID %s twice", r.Port)
		}
		byGUID[r.Port] = fabric.NoPort
	}
	var twice error
	a.f.EndPorts(func(p fabric.PortID) {
		at, listed := byGUID[a.f.PortGUID(p)]
		if !listed {
			return
		}
		if at != fabric.NoPort && twice == nil {
			twice = fmt.Errorf("guid2lid lists port GUID %s, which both %s and %s have", a.f.PortGUID(p), a.f.PortName(at), a.f.PortName(p))
		}
		byGUID[a.f.PortGUID(p)] = p
	})
	if twice != nil {
		return twice
	}
	for _, r := range ranges {
		if r.Min == 0 || r.Min > r.Max || r.Max > fabric.MaxUnicastLID {
			return fmt.Errorf("guid2lid gives port GUID %s the LIDs %d to %d: want a range within 1 to %d", r.Port, r.Min, r.Max, fabric.MaxUnicastLID)
		}
		p := byGUID[r.Port]
		if p == fabric.NoPort {
			for l := int(r.Min); l <= int(r.Max); l++ {
				if !a.taken[l] {
					a.taken[l] = true
					a.absent++
				}
			}
			continue
		}
		n := int(r.Max) - int(r.Min) + 1
		lmc := uint8(0)
		for 1<<lmc < n && lmc < fabric.MaxLMC {
			lmc++
		}
		if 1<<lmc != n {
			return fmt.Errorf("guid2lid gives %s the LIDs %d to %d, %d of them: want a power of two, at most %d", a.f.PortName(p), r.Min, r.Max, n, 1<<fabric.MaxLMC)
		}
		a.base[p], a.lmc[p], a.source[p] = r.Min, lmc, fromGUID2LID
	}
	return nil
}

// readMeshBases takes over what LIDOptions.MeshBases gives.
func (a *assignment) readMeshBases(place func([]uint8) ([]fabric.LID, error)) error {
	if place == nil {
		return errors.New("LIDs by place in a mesh: want the mesh")
	}
	base, err := place(slices.Clone(a.lmc))
	if err != nil {
		return err
	}
	if len(base) != len(a.base) {
		return fmt.Errorf("LIDs by place for %d ports, the fabric has %d", len(base), len(a.base))
	}
	copy(a.base, base)
	text.Fill(a.source, fromMesh)
	return nil
}

// subnetLMC is the LMC of CAs and routers, and whether enhanced switch ports
// have it too.
func (a *assignment) subnetLMC(opt LIDOptions) (uint8, bool, error) {
	if opt.LMC != KeepLMC {
		return uint8(opt.LMC), opt.EnhancedPort0, nil
	}
	ca, err := a.commonLMC(func(n fabric.NodeID) bool { return !a.f.IsSwitch(n) })
	if err != nil {
		return 0, false, err
	}
	esp0, err := a.commonLMC(func(n fabric.NodeID) bool { return a.f.IsSwitch(n) && a.f.Node(n).EnhancedPort0 })
	if err != nil {
		return 0, false, err
	}
	switch {
	case esp0 > 0 && ca >= 0 && esp0 != ca:
		return 0, false, fmt.Errorf("enhanced switch ports 0 have LMC %d, CA ports %d: OpenSM knows one LMC, which enhanced ports have or not; say which", esp0, ca)
	case esp0 > 0:
		return uint8(esp0), true, nil
	}
	return uint8(max(ca, 0)), opt.EnhancedPort0, nil
}

// commonLMC is the one LMC of the ports with LIDs on some nodes, -1 if none
// has any.
func (a *assignment) commonLMC(of func(fabric.NodeID) bool) (int, error) {
	first := fabric.NoPort
	for p, l := range a.base {
		p := fabric.PortID(p)
		if l == 0 || !of(a.f.Owner(p)) {
			continue
		}
		if first == fabric.NoPort {
			first = p
		}
		if a.lmc[p] != a.lmc[first] {
			return 0, fmt.Errorf("%s has LMC %d by %s and %s has LMC %d by %s: OpenSM knows one LMC for all; say which",
				a.f.PortName(first), a.lmc[first], a.source[first], a.f.PortName(p), a.lmc[p], a.source[p])
		}
	}
	if first == fabric.NoPort {
		return -1, nil
	}
	return int(a.lmc[first]), nil
}

// portLMC is the LMC of one port, as OpenSM gives it out.
func (a *assignment) portLMC(p fabric.PortID, lmc uint8, esp0 bool) uint8 {
	n := a.f.Owner(p)
	if a.f.IsSwitch(n) && (!a.f.Node(n).EnhancedPort0 || !esp0) {
		return 0
	}
	return lmc
}

// claimLIDs marks the LIDs of all ports that have a source as taken.
func (a *assignment) claimLIDs() error {
	holder := slices.Repeat([]fabric.PortID{fabric.NoPort}, len(a.taken))
	for p, l := range a.base {
		p := fabric.PortID(p)
		if l == 0 {
			continue
		}
		n := 1 << a.lmc[p]
		if int(l)%n != 0 {
			return fmt.Errorf("%s has LID %d by %s, which is not a multiple of %d as LMC %d wants; use another LMC or renumber all (dense)",
				a.f.PortName(p), l, a.source[p], n, a.lmc[p])
		}
		if int(l)+n-1 > int(fabric.MaxUnicastLID) {
			return fmt.Errorf("%s has LID %d by %s and LMC %d: its last LID is %d, want at most %d", a.f.PortName(p), l, a.source[p], a.lmc[p], int(l)+n-1, fabric.MaxUnicastLID)
		}
		for k := int(l); k < int(l)+n; k++ {
			if q := holder[k]; q != fabric.NoPort {
				return a.conflictError(fabric.LID(k), q, p)
			}
			holder[k] = p
			if a.taken[k] {
				a.absent-- // claimed by an absent port as well: OpenSM lets the present one have it
			}
			a.taken[k] = true
		}
	}
	return nil
}

// reserveVirtual keeps the LIDs of virtual ports free, which the result does not have.
// A port may have those of its own virtual ports.
func (a *assignment) reserveVirtual() error {
	virtual := a.f.VirtualLIDs()
	for p, l := range a.base {
		p := fabric.PortID(p)
		for k := range fabric.LID(1) << a.lmc[p] {
			if q, is := virtual[l+k]; is && l != 0 && q != p {
				return &LIDConflictError{LID: l + k, A: p, B: q, msg: fmt.Sprintf("LID %d belongs to two ports: %s has it by %s, and a virtual port on %s; correct one of them, or number all again (dense)",
					l+k, a.f.PortName(p), a.source[p], a.f.PortName(q))}
			}
		}
	}
	for l := range virtual {
		a.taken[l] = true
	}
	return nil
}

func (a *assignment) conflictError(l fabric.LID, p, q fabric.PortID) error {
	has := func(p fabric.PortID) string {
		s := fmt.Sprintf("%s has %d", a.f.PortName(p), a.base[p])
		if a.lmc[p] > 0 {
			s += fmt.Sprintf(" to %d", int(a.base[p])+1<<a.lmc[p]-1)
		}
		return s + " by " + a.source[p].String()
	}
	return &LIDConflictError{LID: l, A: p, B: q, msg: fmt.Sprintf("LID %d belongs to two ports: %s, %s; correct one of them, or renumber all (dense)", l, has(p), has(q))}
}

// takeLowestFree takes the lowest free run of 1<<lmc LIDs that is aligned to its
// length, and returns 0 when there is none. LIDs are never given back, so
// each LMC's search goes on where the last one ended.
func (a *assignment) takeLowestFree(lmc uint8) fabric.LID {
	n := 1 << lmc
	for l := a.next[lmc]; l+n <= len(a.taken); l += n {
		run := a.taken[l : l+n]
		if slices.Contains(run, true) {
			continue
		}
		text.Fill(run, true)
		a.next[lmc] = l + n
		return fabric.LID(l)
	}
	a.next[lmc] = len(a.taken)
	return 0
}

// outOfLIDs counts what was wanted.
func (a *assignment) outOfLIDs(lmc uint8) error {
	ports, wanted := 0, 0
	a.f.EndPorts(func(p fabric.PortID) { ports, wanted = ports+1, wanted+1<<a.lmc[p] })
	s := fmt.Sprintf("%d end ports want %d LIDs with LMC %d", ports, wanted, lmc)
	if a.absent > 0 {
		s += fmt.Sprintf(", guid2lid reserves %d for absent ports", a.absent)
	}
	s += fmt.Sprintf(", and a subnet has %d", fabric.MaxUnicastLID)
	switch {
	case lmc > 0:
		s += "; use a smaller LMC"
	case wanted+a.absent <= int(fabric.MaxUnicastLID):
		s += "; renumber all (dense)"
	}
	return fmt.Errorf("out of LIDs: %s", s)
}

// AddVirtualLIDs gives the LIDs of virtual ports the entries and path SLs of the ports on which
// they are, which must have LIDs: packets to both take the same paths. Errors are those of
// fabric.WithVirtualLIDs.
func (r *Routing) AddVirtualLIDs(ports map[fabric.LID]fabric.PortID) error {
	f, err := r.Fabric.WithVirtualLIDs(ports)
	if err != nil || f == r.Fabric {
		return err
	}
	t := NewTables(r.Tables.Switches(), max(r.Tables.MaxLID(), f.MaxLID()))
	for s := range fabric.NodeID(t.Switches()) {
		row := t.Row(s)
		copy(row, r.Tables.Row(s))
		for l, p := range ports {
			row[l] = row[f.LID(p)]
		}
	}
	if r.PathSLs != nil {
		r.PathSLs = r.PathSLs.withVirtual(f, ports)
	}
	r.Fabric, r.Tables = f, t
	return nil
}

// withVirtual is p with the LIDs of virtual ports.
func (p *PathSLs) withVirtual(f *fabric.Fabric, ports map[fabric.LID]fabric.PortID) *PathSLs {
	q := *p
	q.maxLID, q.rows = max(p.maxLID, f.MaxLID()), nil
	for _, row := range p.rows {
		wide := slices.Concat(row.given, make([]fabric.SL, q.maxLID-p.maxLID))
		for l, at := range ports {
			wide[l] = wide[f.LID(at)]
		}
		q.add(wide)
	}
	return &q
}
