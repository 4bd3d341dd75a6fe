package myrinet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// EndOfRoute ends the tree form of a route: a port number that
// no switch has (the paper does not name the byte, E-M4).
const EndOfRoute = 0xff

// maxSubtree is the most bytes of a subtree: a pointer of one byte has to skip them.
const maxSubtree = 254

// Route is a unicast source route: the port, 0 to
// 254, by which it leaves each switch on the way.
type Route []fabric.PortNum

// SourceRoute returns the route that forwarding tables give from
// an end port to a LID. Errors are those of lft.Tables.Path.
func SourceRoute(f *fabric.Fabric, t *lft.Tables, src fabric.PortID, dlid fabric.LID) (Route, error) {
	p, err := t.Path(f, src, dlid, nil)
	if err != nil {
		return nil, err
	}
	return text.Each(p[1:], f.Num), nil
}

// Tree returns the route as a tree without branches.
func (r Route) Tree() TreeRoute {
	var t TreeRoute
	for _, p := range slices.Backward(r) {
		t = TreeRoute{{Port: p, Below: t}}
	}
	return t
}

// checksum returns the CRC-8 with the polynomial x^8 + x^2 + x
// + 1, with which packets of Myrinet end (ANSI/VITA 26-1998).
func checksum(data []byte) (c byte) {
	for _, b := range data {
		c ^= b
		for range 8 {
			if c&0x80 != 0 {
				c = c<<1 ^ 0x07
			} else {
				c <<= 1
			}
		}
	}
	return c
}

// AppendWorm appends the bytes of a unicast worm as its host sends it: a byte for
// each switch of the route, the data, a checksum.
func AppendWorm(b []byte, r Route, data []byte) ([]byte, error) {
	from := len(b)
	for i, p := range r {
		if p == fabric.NoPath {
			return nil, fmt.Errorf("byte %d of the route is %d: want a port, 0 to %d", i, p, fabric.MaxPortNum)
		}
		b = append(b, byte(p))
	}
	b = append(b, data...)
	return append(b, checksum(b[from:])), nil
}

// ErrChecksum says that a worm is damaged.
var ErrChecksum = errors.New("the checksum of the worm is wrong")

// Strip does what a switch does with a unicast worm: it takes the
// first byte off as the port to leave by, and ends the rest with a
// new checksum. next is in worm, which is overwritten. Errors:
// ErrChecksum, a worm without a route byte, a byte that is no port.
func Strip(worm []byte) (port fabric.PortNum, next []byte, err error) {
	data, err := Open(worm)
	if err != nil {
		return 0, nil, err
	}
	if len(data) == 0 || data[0] == EndOfRoute {
		return 0, nil, errors.New("the worm has no route byte left")
	}
	next = worm[1:]
	next[len(next)-1] = checksum(next[:len(next)-1])
	return fabric.PortNum(data[0]), next, nil
}

// Open checks a worm that has arrived, and returns its data.
func Open(worm []byte) ([]byte, error) {
	if len(worm) == 0 {
		return nil, errors.New("the worm is empty: want at least a checksum")
	}
	data := worm[:len(worm)-1]
	if checksum(data) != worm[len(data)] {
		return nil, ErrChecksum
	}
	return data, nil
}

// Branch is a port by which a switch sends a copy on, and the tree below it: empty for a host.
type Branch struct {
	Port  fabric.PortNum // 0 to 254
	Below TreeRoute
}

// TreeRoute is the route of a switch-level multicast worm from a
// switch on: its branches in the order of the header, each port once.
type TreeRoute []Branch

// AppendTree appends the header of a tree (section 3 and Fig.
// 2 of the paper, M7): for each branch, depth first, its port,
// a pointer, and the header of the tree below without its end;
// then EndOfRoute. The pointer counts the bytes from itself to
// the next port, 1 and the bytes of the subtree. So a header
// has two bytes for each channel of the tree and one more.
//
// Errors: port 255, a port twice at one switch, a subtree of more than 254 bytes.
func AppendTree(b []byte, t TreeRoute) ([]byte, error) {
	b, err := appendBranches(b, t)
	if err != nil {
		return nil, err
	}
	return append(b, EndOfRoute), nil
}

func appendBranches(b []byte, t TreeRoute) ([]byte, error) {
	var seen [256]bool
	for _, br := range t {
		if br.Port == EndOfRoute {
			return nil, fmt.Errorf("port %d in a route: want 0 to %d", br.Port, fabric.MaxPortNum)
		}
		if seen[br.Port] {
			return nil, fmt.Errorf("port %d comes twice at one switch", br.Port)
		}
		seen[br.Port] = true
		b = append(b, byte(br.Port), 0)
		at := len(b) - 1
		var err error
		if b, err = appendBranches(b, br.Below); err != nil {
			return nil, err
		}
		if n := len(b) - at; n > maxSubtree+1 {
			return nil, fmt.Errorf("the subtree behind port %d has %d bytes: want at most %d", br.Port, n-1, maxSubtree)
		} else {
			b[at] = byte(n)
		}
	}
	return b, nil
}

// HeaderError says where a tree header cannot be read.
type HeaderError struct {
	At  int // byte, from 0
	Err error
}

func (e *HeaderError) Error() string { return fmt.Sprintf("byte %d of the header: %v", e.At, e.Err) }

// Unwrap returns the cause.
func (e *HeaderError) Unwrap() error { return e.Err }

// Stamp is a copy: the port by which it leaves, and its header.
type Stamp struct {
	Port   fabric.PortNum
	Header []byte // with its EndOfRoute
}

// Split does what a switch does with the header of a
// multicast worm: each copy gets the header that a pointer
// encloses, and an end of route. rest is what follows the
// header. Split reads one level, as the switch does; errors
// below are for the next switches to find. Errors are
// *HeaderError: no end, a pointer of 0 or beyond the end, a port twice.
func Split(header []byte) (stamps []Stamp, rest []byte, err error) {
	var seen [256]bool
	for i := 0; ; {
		if i >= len(header) {
			return nil, nil, &HeaderError{i, errors.New("the header ends without an end of route (ff)")}
		}
		port := header[i]
		if port == EndOfRoute {
			return stamps, header[i+1:], nil
		}
		if seen[port] {
			return nil, nil, &HeaderError{i, fmt.Errorf("port %d comes twice", port)}
		}
		seen[port] = true
		if i+1 >= len(header) {
			return nil, nil, &HeaderError{i + 1, fmt.Errorf("no pointer behind port %d", port)}
		}
		next := i + 1 + int(header[i+1])
		if header[i+1] == 0 {
			return nil, nil, &HeaderError{i + 1, errors.New("a pointer of 0: want 1 and the bytes of the subtree")}
		}
		if next >= len(header) {
			return nil, nil, &HeaderError{i + 1, fmt.Errorf("the pointer leads to byte %d of a header of %d", next, len(header))}
		}
		h := make([]byte, 0, next-i-1)
		h = append(append(h, header[i+2:next]...), EndOfRoute)
		stamps = append(stamps, Stamp{fabric.PortNum(port), h})
		i = next
	}
}

// TreeOf joins paths into the tree of a multicast worm: paths that leave a
// switch by the same port share a branch. Branches are in the order in which
// paths first take them. Errors: a path that ends where another one goes on.
func TreeOf(routes []Route) (TreeRoute, error) {
	var t TreeRoute
	var ports []fabric.PortNum
	tails := make(map[fabric.PortNum][]Route)
	ends := 0
	for _, r := range routes {
		if len(r) == 0 {
			ends++
			continue
		}
		if tails[r[0]] == nil {
			ports = append(ports, r[0])
		}
		tails[r[0]] = append(tails[r[0]], r[1:])
	}
	if ends > 0 && len(ports) > 0 {
		return nil, errors.New("a route ends where another one goes on")
	}
	for _, p := range ports {
		below, err := TreeOf(tails[p])
		if err != nil {
			return nil, err
		}
		t = append(t, Branch{p, below})
	}
	return t, nil
}

// GroupID is a Myrinet multicast group, 0 to 254, or Broadcast.
type GroupID uint8

// Broadcast is the group of all hosts. It delivers IP groups whose
// address ends in 255, and the receivers' IP filters them (E-M11).
const Broadcast GroupID = 255

// GroupOf maps an IPv4 multicast address, of class D, to a Myrinet group: its last
// eight bits (section 8.1 of the paper, M27).
func GroupOf(a netip.Addr) (GroupID, error) {
	if !a.Is4() || !a.IsMulticast() {
		return 0, fmt.Errorf("%s is no IPv4 multicast address: want 224.0.0.0 to 239.255.255.255", a)
	}
	b := a.As4()
	return GroupID(b[3]), nil
}

// Membership is an IP group and the numbers of its hosts.
type Membership struct {
	Group netip.Addr
	Hosts []int32
}

// MyrinetGroups returns by GroupID the hosts of all IP groups that share a
// Myrinet group, ascending, each once. Receivers filter what their IP groups do
// not want. IP groups that map to Broadcast are left out. Errors are GroupOf's.
func MyrinetGroups(members []Membership) (groups [Broadcast][]int32, err error) {
	for _, m := range members {
		g, err := GroupOf(m.Group)
		if err != nil {
			return [Broadcast][]int32{}, err
		}
		if g != Broadcast {
			groups[g] = append(groups[g], m.Hosts...)
		}
	}
	for g := range groups {
		slices.Sort(groups[g])
		groups[g] = slices.Compact(groups[g])
	}
	return groups, nil
}
