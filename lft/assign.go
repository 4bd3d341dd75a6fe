package lft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// LIDPolicy is how AssignLIDs finds the LIDs of a fabric.
type LIDPolicy uint8

const (
	// KeepLIDs keeps every LID that the topology text or guid2lid gives, and gives the
	// other end ports the lowest free ones, by Node.Order and port number. It gives no end
	// port the LID of a virtual port.
	KeepLIDs LIDPolicy = iota
	// DenseLIDs drops all LIDs and numbers the end ports from 1: switches by GUID, then the
	// ports of CAs and routers by node GUID and port number. The order of the text does not
	// matter.
	DenseLIDs
	// MeshLIDs drops all LIDs and takes those of LIDOptions.MeshBases, which encode the
	// coordinates of a port on a mesh.
	MeshLIDs
)

// lidPolicies has the names on the command line.
var lidPolicies = [...]string{KeepLIDs: "keep", DenseLIDs: "dense", MeshLIDs: "mesh"}

// String returns the policy's name on the command line.
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

// LIDRange is a line of OpenSM's guid2lid: a port has the LIDs Min to Max.
type LIDRange struct {
	Port     fabric.GUID // port GUID
	Min, Max fabric.LID
}

// KeepLMC is the LIDOptions.LMC that keeps the LMC of the ports.
const KeepLMC = -1

// LIDOptions are the options of AssignLIDs.
type LIDOptions struct {
	Policy LIDPolicy
	// LMC is 0 to 7, or KeepLMC for the LMC of the ports that already have LIDs: it must be
	// the same for all, and is 0 if there are none. As with OpenSM's option lmc, switches
	// have LMC 0, unless EnhancedPort0 is set.
	LMC int
	// EnhancedPort0 gives enhanced switch ports 0 the LMC as well (OpenSM's lmc_esp0). A
	// base port 0 always has LMC 0 (IBA 14.2.5.6). KeepLMC implies EnhancedPort0 if the
	// enhanced ports 0 with LIDs have an LMC above 0.
	EnhancedPort0 bool
	// GUID2LID overrides the LIDs of the topology for KeepLIDs. LIDs of ports that the
	// fabric lacks stay reserved, as with OpenSM.
	GUID2LID []LIDRange
	// MeshBases is for MeshLIDs. Given the LMC of each port, it returns the base LIDs, both
	// by PortID; 0 means any free LID.
	MeshBases func(lmc []uint8) ([]fabric.LID, error)
}

// LIDConflictError means that ports A and B both claim a LID that must be kept. LIDs are
// never moved silently.
type LIDConflictError struct {
	LID  fabric.LID
	A, B fabric.PortID
	msg  string
}

func (e *LIDConflictError) Error() string { return e.msg }

// lidSource is where the LID of a port comes from.
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
	lmc    []uint8      // by PortID; first that of the LID's source, then the final one
	source []lidSource  // by PortID
	taken  []bool       // by LID
	next   [fabric.MaxLMC + 1]int
	absent int // LIDs reserved for ports that the fabric lacks
}

// AssignLIDs gives every end port its LIDs and returns the fabric with them, or f itself if
// nothing changes. It takes time linear in ports and LIDs.
//
// Errors: LIDs that cannot be kept (a *LIDConflictError if two ports claim one; a base LID
// that is not a multiple of 1<<LMC; with KeepLMC, ports with different LMCs), a guid2lid
// that contradicts itself or names an ambiguous port, and not enough LIDs.
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
	// This is for DenseLIDs, too: with KeepLMC it needs the LMC of these LIDs.
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

// changesNothing returns true if all ports keep their LIDs and LMCs.
func (a *assignment) changesNothing() bool {
	for p, l := range a.base {
		if q := fabric.PortID(p); l != a.f.LID(q) || a.lmc[p] != a.f.LMC(q) {
			return false
		}
	}
	return true
}

// readRanges takes the LIDs of guid2lid, and reserves those of ports that f lacks.
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

// readMeshBases takes the LIDs of LIDOptions.MeshBases.
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

// subnetLMC returns the LMC of CAs and routers, and true if enhanced switch ports 0 have it
// too.
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

// commonLMC returns the LMC of the ports with LIDs, on nodes for which of returns
// true; -1 if there are none. It is an error if LMCs differ.
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

// portLMC returns the LMC that OpenSM gives a port.
func (a *assignment) portLMC(p fabric.PortID, lmc uint8, esp0 bool) uint8 {
	n := a.f.Owner(p)
	if a.f.IsSwitch(n) && (!a.f.Node(n).EnhancedPort0 || !esp0) {
		return 0
	}
	return lmc
}

// claimLIDs marks the LIDs in base as taken.
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
				a.absent-- // reserved for an absent port: OpenSM gives it to the present one
			}
			a.taken[k] = true
		}
	}
	return nil
}

// reserveVirtual marks the LIDs of virtual ports as taken. Only the port that a virtual
// port is on may have its LID.
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

// takeLowestFree takes the lowest free 1<<lmc LIDs in a row, aligned to their number, and
// returns the first, 0 if there are none. LIDs never become free, so it continues where its
// last call for this LMC ended.
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

// AddVirtualLIDs gives the LIDs of virtual ports the entries and path SLs of the ports that
// they are on, which must have LIDs: so packets to both take the same paths. Errors are
// those of fabric.WithVirtualLIDs.
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
