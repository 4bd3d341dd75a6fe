// Package groupfile reads the files in which operators write multicast groups,
// and the groups.json of a compiled directory.
// It makes no promise to other modules.
//
// A file is YAML or JSON: a mapping with the key groups, whose value is a list,
// or, as in groups.json, the list alone. Each item is a mapping with the keys
//
//	name       any text; required
//	mgid       given out when absent
//	mlid       given out when absent: 0xc001, 49153, or either in quotes
//	receivers  a list of end ports; required
//	senders    a list of end ports; all receivers when absent
//	sl         0 to 15; 0 when absent
//
// End ports are given as
//
//	0x0000000000100001  a port GUID; the GUID of a switch is that of its port 0
//	"host 0,1"          a node description: all ports of the node with a cable,
//	                    or port 0 of a switch
//	"re:^dgx-0[1-4]"    a regular expression (package regexp), not anchored: all
//	                    nodes whose description it matches, CAs and routers, or
//	                    else switches when it matches none of these
//	17                  a LID, in decimal and without quotes
//
// In quotes, 0x and at most 16 hexadecimal digits are a GUID too, and decimal
// digits are a description.
//
// A file has at most 64 MiB and one document. Aliases may repeat what an anchor
// names. Tags, merge keys and text in blocks (| and >) are errors that say what
// to write instead.
package groupfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// Parse reads groups, for the end ports of f, in the order of the file. name is
// the file's, for messages. Slices of the result may be shared between groups
// and must not be changed.
//
// Errors are *fabric.ParseError, and the groups are then nil: text that is not
// as above, keys that are unknown or come twice, two groups with one MGID or
// one MLID (unless a groups.json marks the MLID as shared), end ports that are
// not in f, descriptions of several nodes.
func Parse(name string, data []byte, f *fabric.Fabric) ([]mft.Group, error) {
	root, err := parseText(name, data)
	if err != nil {
		return nil, err
	}
	p := &parser{data: data, f: f, lists: make(map[*node][]fabric.PortID), patterns: make(map[string][]fabric.PortID)}
	groups, err := p.file(root)
	if err != nil {
		return nil, locate(name, data, err)
	}
	return groups, nil
}

// parser makes groups of what a file says.
type parser struct {
	data     []byte
	f        *fabric.Fabric
	written  bool // by compile: a list without the key groups
	byGUID   map[fabric.GUID]fabric.PortID
	byName   map[string][]fabric.NodeID
	lists    map[*node][]fabric.PortID // lists that have been read, which aliases repeat
	patterns map[string][]fabric.PortID
}

const wantGroups = "want groups: and a list with name: and receivers: for each group"

func (p *parser) file(root *node) ([]mft.Group, error) {
	if root == nil {
		return nil, &textError{0, errors.New("no groups, the file is empty; " + wantGroups)}
	}
	items := root
	switch root.kind {
	case mapping:
		fields, err := p.fields(root, "groups")
		if err != nil {
			return nil, err
		}
		if items = fields["groups"]; items == nil {
			return nil, failAt(root.at, "no groups; %s", wantGroups)
		}
	case list:
		p.written = true
	}
	if items.kind != list {
		return nil, failAt(items.at, "%s for groups; %s", items.kind, wantGroups)
	}
	groups := make([]mft.Group, 0, len(items.items))
	byMGID := make(map[mft.MGID]int) // offsets of those before
	byMLID := make(map[fabric.LID]int)
	shared := make(map[fabric.LID]bool)
	for _, n := range items.items {
		g, at, isShared, err := p.group(n)
		if err != nil {
			return nil, err
		}
		if g.MGID.IsValid() {
			if first, dup := byMGID[g.MGID]; dup {
				return nil, failAt(at.mgid, "MGID %s is that of the group in line %d already; want one for each group, or none", g.MGID, p.line(first))
			}
			byMGID[g.MGID] = at.mgid
		}
		if g.MLID != 0 {
			if first, dup := byMLID[g.MLID]; dup && !(isShared && shared[g.MLID]) {
				return nil, failAt(at.mlid, "MLID %#04x is that of the group in line %d already; want one for each group, or none", uint16(g.MLID), p.line(first))
			}
			byMLID[g.MLID] = at.mlid
			shared[g.MLID] = isShared
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// line is the line of an offset.
func (p *parser) line(at int) int {
	n, _, _ := position(p.data, at)
	return n
}

// fields gives the values of a mapping by their keys, which must be of those
// that are wanted. Keys without a value are left out.
func (p *parser) fields(n *node, want ...string) (map[string]*node, error) {
	fields := make(map[string]*node, len(n.items)/2)
	keys := make(map[string]*node, len(n.items)/2)
	for i := 0; i < len(n.items); i += 2 {
		key, value := n.items[i], n.items[i+1]
		if !slices.Contains(want, key.text) {
			return nil, failAt(key.at, "unknown key %q; want %s", key.text, text.List(want, "or"))
		}
		if first, dup := keys[key.text]; dup {
			return nil, failAt(key.at, "a second %s, the first is in line %d", key.text, p.line(first.at))
		}
		keys[key.text] = key
		if value.kind == scalar && !value.quoted && (value.text == "" || value.text == "null" || value.text == "~") {
			continue
		}
		fields[key.text] = value
	}
	return fields, nil
}

// marks are offsets of values of a group.
type marks struct{ mgid, mlid int }

func (p *parser) group(n *node) (g mft.Group, at marks, isShared bool, err error) {
	if n.kind != mapping {
		return g, at, false, failAt(n.at, "%s for a group; want name: and receivers:", n.kind)
	}
	want := []string{"name", "mgid", "mlid", "receivers", "senders", "sl"}
	if p.written {
		want = append(want, "scheme", "shared_mlid", "why")
	}
	fields, err := p.fields(n, want...)
	if err != nil {
		return g, at, false, err
	}
	for _, key := range want {
		v := fields[key]
		if v != nil && v.kind != scalar && key != "receivers" && key != "senders" {
			return g, at, false, failAt(v.at, "%s for %s; want a value in its line", v.kind, key)
		}
	}
	v := fields["name"]
	if v == nil {
		return g, at, false, failAt(n.at, "a group without a name; want name: and any text")
	}
	g.Name = v.text
	if v := fields["mgid"]; v != nil {
		at.mgid = v.at
		if g.MGID, err = mft.ParseMGID(v.text); err != nil {
			return g, at, false, &textError{v.at, err}
		}
	}
	if v := fields["mlid"]; v != nil {
		at.mlid = v.at
		l, err := number(v, "MLID", uint64(mft.MinMLID), uint64(mft.MaxMLID), "%#04x")
		if err != nil {
			return g, at, false, err
		}
		g.MLID = fabric.LID(l)
	}
	if v := fields["sl"]; v != nil {
		l, err := number(v, "SL", 0, 15, "%d")
		if err != nil {
			return g, at, false, err
		}
		g.SL = fabric.SL(l)
	}
	if v := fields["shared_mlid"]; v != nil {
		if isShared = v.text == "true"; !isShared && v.text != "false" {
			return g, at, false, failAt(v.at, "shared_mlid %q, want true or false", v.text)
		}
	}
	v = fields["receivers"]
	if v == nil {
		return g, at, false, failAt(n.at, "group %q has no receivers; want receivers: and a list of port GUIDs, descriptions or re: and regular expressions", g.Name)
	}
	if g.Receivers, err = p.ports("receivers", v); err != nil {
		return g, at, false, err
	}
	g.Senders = g.Receivers
	if v := fields["senders"]; v != nil {
		if g.Senders, err = p.ports("senders", v); err != nil {
			return g, at, false, err
		}
	}
	return g, at, isShared, nil
}

// number reads a number, in decimal or with 0x in front in hexadecimal.
func number(n *node, what string, least, most uint64, format string) (uint64, error) {
	digits, isHex := strings.CutPrefix(n.text, "0x")
	base := 10
	if isHex {
		base = 16
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil || v < least || v > most || !isHex && len(digits) > 1 && digits[0] == '0' {
		return 0, failAt(n.at, "%s %s, want "+format+" to "+format, what, n.text, least, most)
	}
	return v, nil
}

// ports reads a list of end ports.
func (p *parser) ports(key string, n *node) ([]fabric.PortID, error) {
	if n.kind != list {
		return nil, failAt(n.at, "%s for %s; want a list, such as [0x0000000000100001, \"host 0,1\"]", n.kind, key)
	}
	if len(n.items) == 0 && !p.written {
		return nil, failAt(n.at, "no %s; want at least one, and for senders that are all receivers no line at all", key)
	}
	if ports, ok := p.lists[n]; ok {
		return ports, nil
	}
	if p.byGUID == nil {
		p.index()
	}
	ports := make([]fabric.PortID, 0, len(n.items))
	for _, item := range n.items {
		var err error
		if ports, err = p.port(ports, item); err != nil {
			return nil, err
		}
		if len(ports) > 4*p.f.NumPorts() {
			slices.Sort(ports)
			ports = slices.Compact(ports)
		}
	}
	slices.Sort(ports)
	ports = slices.Clip(slices.Compact(ports))
	p.lists[n] = ports
	return ports, nil
}

// index prepares for finding end ports.
func (p *parser) index() {
	f := p.f
	p.byGUID = make(map[fabric.GUID]fabric.PortID, f.NumNodes())
	p.byName = make(map[string][]fabric.NodeID, f.NumNodes())
	for s := range fabric.NodeID(f.NumSwitches()) {
		p.byGUID[f.Node(s).GUID] = f.PortBase(s)
	}
	f.EndPorts(func(port fabric.PortID) {
		if g := f.PortGUID(port); g != 0 {
			p.byGUID[g] = port
		}
	})
	for n := range fabric.NodeID(f.NumNodes()) {
		d := f.Name(n).Text
		p.byName[d] = append(p.byName[d], n)
	}
}

const wantPort = `want a port GUID such as 0x0000000000100001, a node description, re: and a regular expression, or a LID`

// port appends the end ports that an item of a list stands for.
func (p *parser) port(ports []fabric.PortID, n *node) ([]fabric.PortID, error) {
	if n.kind != scalar {
		return nil, failAt(n.at, "%s for an end port; %s", n.kind, wantPort)
	}
	if pattern, ok := strings.CutPrefix(n.text, "re:"); ok {
		return p.pattern(ports, n, pattern)
	}
	digits, isHex := strings.CutPrefix(n.text, "0x")
	if isHex && len(digits) > 0 && strings.Trim(digits, "0123456789abcdefABCDEF") == "" {
		return p.guid(ports, n)
	}
	if !n.quoted {
		switch {
		case n.text == "", n.text == "null", n.text == "~":
			return nil, failAt(n.at, "nothing for an end port; %s", wantPort)
		case strings.Trim(n.text, "0123456789") == "":
			l, err := number(n, "LID", 1, uint64(fabric.MaxUnicastLID), "%d")
			if err != nil {
				return nil, failAt(n.at, "%w; GUIDs begin with 0x, and descriptions that are numbers want quotes", err)
			}
			port := p.f.LIDPort(fabric.LID(l))
			if port == fabric.NoPort {
				return nil, failAt(n.at, "no end port has LID %d; GUIDs begin with 0x, and descriptions that are numbers want quotes", l)
			}
			return append(ports, port), nil
		}
	}
	nodes := p.byName[n.text]
	switch {
	case len(nodes) == 0:
		return nil, failAt(n.at, "no node has the description %q%s", n.text, p.similar(n.text))
	case len(nodes) > 1:
		return nil, failAt(n.at, "%d nodes have the description %q, those with the GUIDs %s; want port GUIDs, or re: for all of them", len(nodes), n.text, p.guids(nodes))
	}
	before := len(ports)
	if ports = p.nodePorts(ports, nodes[0]); len(ports) == before {
		return nil, failAt(n.at, "no port of %q has a cable", n.text)
	}
	return ports, nil
}

// nodePorts appends the end ports of a node.
func (p *parser) nodePorts(ports []fabric.PortID, n fabric.NodeID) []fabric.PortID {
	if p.f.IsSwitch(n) {
		return append(ports, p.f.PortBase(n))
	}
	return slices.AppendSeq(ports, p.f.Cabled(n))
}

// guid appends the end port that has a GUID.
func (p *parser) guid(ports []fabric.PortID, n *node) ([]fabric.PortID, error) {
	g, err := fabric.ParseGUID(n.text)
	if err != nil {
		return nil, &textError{n.at, err}
	}
	if port, ok := p.byGUID[g]; ok {
		return append(ports, port), nil
	}
	if node, ok := p.f.NodeByGUID(g); ok {
		own := p.nodePorts(nil, node)
		if len(own) == 0 {
			return nil, failAt(n.at, "no port of node %s has a cable", g)
		}
		var guids []string
		for _, port := range own[:min(len(own), maxListed)] {
			guids = append(guids, p.f.PortGUID(port).String())
		}
		return nil, failAt(n.at, "%s is the GUID of a node, %q; want that of a port: %s", g, p.f.Name(node).Text, strings.Join(guids, ", "))
	}
	return nil, failAt(n.at, "no end port has the GUID %s", g)
}

// pattern appends the end ports of the nodes that a regular expression matches.
func (p *parser) pattern(ports []fabric.PortID, n *node, pattern string) ([]fabric.PortID, error) {
	found, ok := p.patterns[pattern]
	if !ok {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, failAt(n.at, "%w", err)
		}
		f := p.f
		all := func(from, to int) {
			for i := fabric.NodeID(from); i < fabric.NodeID(to); i++ {
				if re.MatchString(f.Name(i).Text) {
					found = p.nodePorts(found, i)
				}
			}
		}
		if all(f.NumSwitches(), f.NumNodes()); len(found) == 0 {
			all(0, f.NumSwitches())
		}
		p.patterns[pattern] = found
	}
	if len(found) == 0 {
		return nil, failAt(n.at, "no node with a cable has a description that matches %q%s", pattern, p.similar(pattern))
	}
	return append(ports, found...), nil
}

// maxListed bounds how many nodes a message lists.
const maxListed = 5

func (p *parser) guids(nodes []fabric.NodeID) string {
	guids := make([]string, len(nodes))
	for i, n := range nodes {
		guids[i] = p.f.Node(n).GUID.String()
	}
	return text.Few(guids, maxListed)
}

// similar is "; want ..." with descriptions that differ in the case of letters
// only, or contain the text, or begin like it.
func (p *parser) similar(name string) string {
	lower := strings.ToLower(name)
	best, rank := "", 0
	for n := range fabric.NodeID(p.f.NumNodes()) {
		d := p.f.Name(n).Text
		l := strings.ToLower(d)
		r := 0
		switch {
		case l == lower:
			r = 1 << 20
		case lower != "" && strings.Contains(l, lower):
			r = 1 << 19
		default:
			for r < min(len(l), len(lower)) && l[r] == lower[r] {
				r++
			}
		}
		if r > rank || r == rank && r > 0 && cmp.Less(d, best) {
			best, rank = d, r
		}
	}
	if rank == 0 {
		return "; " + wantPort
	}
	return fmt.Sprintf("; want one like %q", best)
}
