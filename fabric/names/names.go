// Package names reads node descriptions, and finds the nodes that a person means by a
// name. It makes no promise to other modules.
package names

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// systemName is how firmware describes a switch chip: "MF0;NAME:MODEL/U1", and in a
// director "MF0;NAME:MODEL/L16/U2", chip 2 of leaf card 16, or "MF0;NAME:MODEL/S3/U1",
// chip 1 of spine card 3.
var systemName = regexp.MustCompile(`^[A-Za-z0-9]+;(.+):([^:/]+)((?:/[A-Za-z]+[0-9]+)+)$`)

// Chip is the place of a switch chip in a system.
type Chip struct {
	System string // its name
	Model  string
	Card   byte // 'L', 'S', or 0 for none
	Slot   int  // of the card
	Unit   int  // number of the chip on the card or in the system
}

// ChipOf reads the description of a switch. If it names no chip, all of it is the system.
func ChipOf(description string) Chip {
	m := systemName.FindStringSubmatch(description)
	if m == nil {
		return Chip{System: description}
	}
	c := Chip{System: m[1], Model: m[2]}
	for _, piece := range strings.Split(m[3][1:], "/") {
		letters := strings.TrimRight(piece, "0123456789")
		n, err := strconv.Atoi(piece[len(letters):])
		if err != nil {
			return Chip{System: description}
		}
		switch strings.ToUpper(letters) {
		case "L", "S":
			c.Card, c.Slot = strings.ToUpper(letters)[0], n
		case "U":
			c.Unit = n
		default:
			return Chip{System: description}
		}
	}
	return c
}

// A description of an adapter of a host has the host's name and the adapter's: "node17 mlx5_0", "node17
// HCA-2", "node17 ibp11s0f0", or both in one word, "su0-dgx00-mlx3".
var (
	adapterWord = regexp.MustCompile(`(?i)^(?:hca[-_]?\d+|mlx\d+_\w+|mthca\d+|qib\d+|hfi\d+_\d+|ib[a-z0-9_]+|rocep\w+|rdma\w+|ocrdma\d+|bnxt_re\d+)$`)
	oneWord     = regexp.MustCompile(`(?i)^(.+?)[-_.](hca[-_]?\d+|mlx\d+(?:_\d+)?)$`)
)

// HostOf splits the description of an adapter; ok is false if it names no host.
func HostOf(description string) (host, name string, ok bool) {
	words := strings.FieldsFunc(description, func(r rune) bool { return strings.ContainsRune("\t\n\f\r ", r) })
	switch len(words) {
	case 1:
		if m := oneWord.FindStringSubmatch(words[0]); m != nil {
			return m[1], m[2], true
		}
	case 2:
		if adapterWord.MatchString(words[1]) {
			return words[0], words[1], true
		}
	}
	return "", "", false
}

// Find lists the nodes that a text means, in the order of the text and without repetitions.
// The text is a GUID with 0x in front, a name, or names with commas between them and numbers
// in brackets, n[001-004,7]. A name is that of a node, a switch system with all of its chips,
// or a host with all of its adapters; case does not matter. Two dots in a name that no
// node has stand for three or more characters, as in names cut on terminals, if only one node
// has such a name. The error about an unknown name suggests a similar one.
func Find(f *fabric.Fabric, text string) ([]fabric.NodeID, error) { return NewFinder(f).Find(text) }

// Finder finds nodes by many texts.
type Finder struct {
	f       *fabric.Fabric
	known   map[string][]fabric.NodeID
	unknown int // number of names not found
}

// maxNear is for how many unknown names a Finder looks for a similar one, among all nodes.
const maxNear = 100

// NewFinder indexes the names of all nodes.
func NewFinder(f *fabric.Fabric) *Finder { return &Finder{f: f, known: index(f)} }

// Find does what the function Find does.
func (x *Finder) Find(text string) ([]fabric.NodeID, error) {
	if nodes, err := x.findOne(text); nodes != nil || err != nil {
		return nodes, err // a description may have commas
	}
	list, err := hostlist.Expand(text)
	if err != nil {
		return nil, err
	}
	var found []fabric.NodeID
	seen := make(map[fabric.NodeID]bool)
	for _, name := range list {
		nodes, err := x.findOne(name)
		if err != nil {
			return nil, err
		}
		if nodes == nil {
			return nil, x.unknownError(name)
		}
		for _, n := range nodes {
			if !seen[n] {
				seen[n] = true
				found = append(found, n)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%q names no node; want a GUID, a name, or a list of names like n[1-4,7]", text)
	}
	return found, nil
}

// unknownError returns the error about an unknown name. It
// suggests one that differs in two letters at most.
func (x *Finder) unknownError(name string) error {
	near, least := "", 3
	if x.unknown++; x.unknown <= maxNear {
		for _, k := range slices.Sorted(maps.Keys(x.known)) {
			if d := len(k) - len(name); d > 2 || d < -2 {
				continue
			}
			if d := levenshtein.ComputeDistance(k, strings.ToLower(name)); d < least {
				least, near = d, k
			}
		}
	}
	if near != "" {
		return fmt.Errorf("no node is called %q; %q is one", name, near)
	}
	return fmt.Errorf("no node is called %q; want a GUID, a name, or a list of names like n[1-4,7]", name)
}

// findOne finds the nodes of a name or GUID, or the one node of a name that is cut by
// two dots. It returns nil if there is none, and an error if several match a cut name.
func (x *Finder) findOne(text string) (nodes []fabric.NodeID, err error) {
	if nodes := x.known[strings.ToLower(text)]; nodes != nil {
		return nodes, nil
	}
	if g, err := fabric.ParseGUID(text); err == nil && strings.HasPrefix(text, "0x") {
		if n, ok := x.f.NodeByGUID(g); ok {
			return []fabric.NodeID{n}, nil
		}
	}
	if !strings.Contains(text, "..") {
		return nil, nil
	}
	like, err := regexp.Compile("(?is)^" + strings.ReplaceAll(regexp.QuoteMeta(text), `\.\.`, ".{3,}") + "$")
	if err != nil {
		return nil, err
	}
	var called []string
	for n := range fabric.NodeID(x.f.NumNodes()) {
		if name := x.f.Name(n).Text; like.MatchString(name) {
			nodes, called = append(nodes, n), append(called, strconv.Quote(name))
		}
	}
	if n := len(called); n > 1 {
		return nil, fmt.Errorf("%d nodes have names like %q: %s%s", n, text, strings.Join(called[:min(n, 4)], ", "), map[bool]string{true: ", .."}[n > 4])
	}
	return nodes, nil
}

// Port finds a port by NODE:PORT, where PORT is its number or
// its label. NODE must mean one node.
func (x *Finder) Port(text string) (fabric.PortID, error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return fabric.NoPort, fmt.Errorf("want NODE:PORT, like leaf03:37")
	}
	if name := text[:at]; strings.ContainsAny(name, "[,") && x.known[strings.ToLower(name)] == nil {
		return fabric.NoPort, x.unknownError(name) // a list is not one node
	}
	nodes, err := x.Find(text[:at])
	if err != nil {
		return fabric.NoPort, err
	}
	if len(nodes) != 1 {
		return fabric.NoPort, fmt.Errorf("%d nodes are called %q; want one, or its GUID", len(nodes), text[:at])
	}
	n, port := nodes[0], text[at+1:]
	if num, err := strconv.ParseUint(port, 10, 8); err == nil && num >= 1 && num <= uint64(x.f.Node(n).NumPorts) {
		return x.f.Port(n, fabric.PortNum(num)), nil
	}
	for num := fabric.PortNum(1); num <= x.f.Node(n).NumPorts; num++ {
		if p := x.f.Port(n, num); port != "" && x.f.Label(p) == port {
			return p, nil
		}
	}
	return fabric.NoPort, fmt.Errorf("%s has ports 1 to %d", x.f.Name(n), x.f.Node(n).NumPorts)
}

// Hosts lists the hosts that a text names, in its order, each with its adapters
// in natural order of their names: a name, or names with commas between them
// and numbers in brackets. Errors are those of Find, and one for a switch.
func (x *Finder) Hosts(list string) (hosts []Host, err error) {
	parts := []string{list}
	if x.known[strings.ToLower(list)] == nil { // a name may have commas and brackets
		if parts, err = hostlist.Expand(list); err != nil {
			return nil, err
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("no host; want names, like n[001-016]")
	}
	for _, name := range parts {
		nodes, err := x.Find(name)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			if x.f.IsSwitch(n) {
				return nil, fmt.Errorf("%s is a switch: want hosts", x.f.Name(n))
			}
		}
		hosts = append(hosts, Host{name, InOrder(x.f, nodes)})
	}
	return hosts, nil
}

// InOrder sorts nodes in natural order of their names.
func InOrder(f *fabric.Fabric, nodes []fabric.NodeID) []fabric.NodeID {
	return slices.SortedStableFunc(slices.Values(nodes), func(m, n fabric.NodeID) int { return text.Natural(f.Name(m).Text, f.Name(n).Text) })
}

// index lists nodes by all of their names in lower case.
func index(f *fabric.Fabric) map[string][]fabric.NodeID {
	known := make(map[string][]fabric.NodeID, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		description := strings.TrimSpace(f.Node(n).Description)
		all := []string{description}
		if name := strings.TrimSpace(f.Name(n).Text); name != description {
			all = append(all, name)
		}
		if f.IsSwitch(n) {
			all = append(all, ChipOf(description).System)
		} else {
			for _, name := range slices.Clone(all) {
				if host, _, ok := HostOf(name); ok {
					all = append(all, host)
				}
			}
		}
		for i, name := range all {
			if name = strings.ToLower(name); name != "" && !slices.Contains(all[:i], name) && !slices.Contains(known[name], n) {
				known[name] = append(known[name], n)
			}
		}
	}
	return known
}

// Fold returns the number of hosts that nodes belong to, and
// the hosts' names with numbers in brackets. A switch counts by
// its system, any other node without a host's name by its own.
func Fold(f *fabric.Fabric, nodes []fabric.NodeID) (n int, list string) {
	var hosts []string
	for _, n := range nodes {
		host, _, ok := HostOf(f.Name(n).Text)
		if f.IsSwitch(n) {
			host = ChipOf(f.Name(n).Label()).System
		} else if !ok {
			host = f.Name(n).Label()
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return len(hosts), hostlist.Fold(hosts)
}
