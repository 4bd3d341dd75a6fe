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
//	"host 0,1"          a name, as package names reads it: of a node, a host with
//	                    its adapters, or a list such as n[1-4,7]; all ports with
//	                    a cable, or port 0 of a switch
//	"re:^dgx-0[1-4]"    a regular expression (package regexp), not anchored: all
//	                    nodes whose description it matches, CAs and routers, or
//	                    else switches when it matches none of these
//	17                  a LID, in decimal and without quotes
//
// In quotes, 0x and at most 16 hexadecimal digits are a GUID too, and decimal
// digits are a name.
//
// A file has at most 64 MiB and one document. Anchors, aliases and tags are errors.
package groupfile

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// Parse reads groups, in the order of the file. name is the file's name, for
// messages; end ports must be in f. If the file names no senders, Senders is
// the same slice as Receivers, and must not be changed.
//
// Errors are *fabric.ParseError, and the groups are then nil: text that is
// not as above, unknown or duplicate keys, two groups with one MGID or one
// MLID (except an MLID that a groups.json marks as shared), end ports that
// are not in f.
func Parse(name string, data []byte, f *fabric.Fabric) ([]mft.Group, error) {
	if json.Valid(data) {
		data = jsonString.ReplaceAllFunc(data, quoteYAML)
	}
	file, root, err := yamlfile.Parse(name, data, yamlfile.GroupsLimit, "a file of groups", wantGroups)
	if err != nil {
		return nil, err
	}
	p := &parser{File: file, f: f, patterns: make(map[string][]fabric.PortID),
		byMGID: make(map[mft.MGID]int), byMLID: make(map[fabric.LID]int), shared: make(map[fabric.LID]bool)}
	p.index()
	if p.written = root.Kind == yaml.SequenceNode; p.written {
		err = p.List(root, "groups", p.group)
	} else {
		err = p.Mapping(root, map[string]func(*yaml.Node) error{
			"groups": func(n *yaml.Node) error { return p.List(n, "groups, each with name: and receivers:", p.group) },
		})
		if err == nil && len(root.Content) == 0 {
			err = p.Fail(root, "no groups; want %s", wantGroups)
		}
	}
	if err != nil {
		return nil, err
	}
	return p.groups, nil
}

const wantGroups = "groups: and a list with name: and receivers: for each group"

var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// quoteYAML rewrites a JSON string so that YAML reads the same: YAML knows neither surrogate pairs
// nor a DEL in quotes.
func quoteYAML(quoted []byte) []byte {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return quoted
	}
	return strconv.AppendQuoteToASCII(nil, s)
}

// parser makes groups from the text of a file.
type parser struct {
	*yamlfile.File
	f        *fabric.Fabric
	written  bool // by compile: groups.json, a list without the key groups
	groups   []mft.Group
	byMGID   map[mft.MGID]int // by MGID: the line of its group
	byMLID   map[fabric.LID]int
	shared   map[fabric.LID]bool
	byGUID   map[fabric.GUID]fabric.PortID
	finder   *names.Finder
	patterns map[string][]fabric.PortID
}

// group reads a group, and appends it to groups. Keys without a value count as absent.
func (p *parser) group(n *yaml.Node) error {
	want := []string{"name", "mgid", "mlid", "sl", "receivers", "senders"}
	if p.written {
		want = append(want, "scheme", "shared_mlid", "why")
	}
	at := make(map[string]*yaml.Node)
	keys := make(map[string]func(*yaml.Node) error)
	for _, key := range want {
		keys[key] = func(v *yaml.Node) error {
			switch {
			case v.Tag == "!!null":
				return nil
			case v.Kind != yaml.ScalarNode && key != "receivers" && key != "senders":
				return p.Fail(v, "%s for %s; want a value in its line", yamlfile.KindName(v), key)
			}
			at[key] = v
			return nil
		}
	}
	if err := p.Mapping(n, keys); err != nil {
		return err
	}
	if at["name"] == nil {
		return p.Fail(n, "a group without a name; want name: and any text")
	}
	g := mft.Group{Name: at["name"].Value}
	if v := at["mgid"]; v != nil {
		var err error
		if g.MGID, err = mft.ParseMGID(v.Value); err != nil {
			return p.Fail(v, "%w", err)
		}
		if first, dup := p.byMGID[g.MGID]; dup {
			return p.Fail(v, "MGID %s is that of the group in line %d already; want one for each group, or none", g.MGID, first)
		}
		p.byMGID[g.MGID] = v.Line
	}
	isShared := false
	if v := at["shared_mlid"]; v != nil {
		if isShared = v.Value == "true"; !isShared && v.Value != "false" {
			return p.Fail(v, "shared_mlid %q, want true or false", v.Value)
		}
	}
	if v := at["mlid"]; v != nil {
		l, err := p.number(v, "MLID", uint64(mft.MinMLID), uint64(mft.MaxMLID), "%#04x")
		if err != nil {
			return err
		}
		g.MLID = fabric.LID(l)
		if first, dup := p.byMLID[g.MLID]; dup && !(isShared && p.shared[g.MLID]) {
			return p.Fail(v, "MLID %#04x is that of the group in line %d already; want one for each group, or none", l, first)
		}
		p.byMLID[g.MLID], p.shared[g.MLID] = v.Line, isShared
	}
	if v := at["sl"]; v != nil {
		l, err := p.number(v, "SL", 0, 15, "%d")
		if err != nil {
			return err
		}
		g.SL = fabric.SL(l)
	}
	if at["receivers"] == nil {
		return p.Fail(n, "group %q has no receivers; want receivers: and a list of port GUIDs, names or re: and regular expressions", g.Name)
	}
	var err error
	if g.Receivers, err = p.ports("receivers", at["receivers"]); err != nil {
		return err
	}
	g.Senders = g.Receivers
	if v := at["senders"]; v != nil {
		if g.Senders, err = p.ports("senders", v); err != nil {
			return err
		}
	}
	p.groups = append(p.groups, g)
	return nil
}

// number reads a number, decimal, or hexadecimal after 0x.
func (p *parser) number(n *yaml.Node, what string, least, most uint64, format string) (uint64, error) {
	digits, isHex := strings.CutPrefix(n.Value, "0x")
	base := 10
	if isHex {
		base = 16
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil || v < least || v > most || !isHex && len(digits) > 1 && digits[0] == '0' {
		return 0, p.Fail(n, "%s %s, want "+format+" to "+format, what, n.Value, least, most)
	}
	return v, nil
}

// ports reads a list of end ports.
func (p *parser) ports(key string, n *yaml.Node) ([]fabric.PortID, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, p.Fail(n, "%s for %s; want a list, such as [0x0000000000100001, \"host 0,1\"]", yamlfile.KindName(n), key)
	}
	if len(n.Content) == 0 && !p.written {
		return nil, p.Fail(n, "no %s; want at least one, and for senders that are all receivers no line at all", key)
	}
	ports := make([]fabric.PortID, 0, len(n.Content))
	for _, item := range n.Content {
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
	return slices.Clip(slices.Compact(ports)), nil
}

// index prepares to find end ports by GUID and by name.
func (p *parser) index() {
	f := p.f
	p.byGUID = make(map[fabric.GUID]fabric.PortID, f.NumNodes())
	p.finder = names.NewFinder(f)
	for _, s := range f.Switches() {
		p.byGUID[f.Node(s).GUID] = f.PortBase(s)
	}
	f.EndPorts(func(port fabric.PortID) {
		if g := f.PortGUID(port); g != 0 {
			p.byGUID[g] = port
		}
	})
}

const wantPort = `want a port GUID such as 0x0000000000100001, a name, re: and a regular expression, or a LID`

// port appends the end ports that an item of a list names.
func (p *parser) port(ports []fabric.PortID, n *yaml.Node) ([]fabric.PortID, error) {
	if n.Kind != yaml.ScalarNode {
		return nil, p.Fail(n, "%s for an end port; %s", yamlfile.KindName(n), wantPort)
	}
	if pattern, ok := strings.CutPrefix(n.Value, "re:"); ok {
		return p.pattern(ports, n, pattern)
	}
	digits, isHex := strings.CutPrefix(n.Value, "0x")
	if isHex && len(digits) > 0 && strings.Trim(digits, "0123456789abcdefABCDEF") == "" {
		return p.guid(ports, n)
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
		switch {
		case n.Tag == "!!null":
			return nil, p.Fail(n, "nothing for an end port; %s", wantPort)
		case strings.Trim(n.Value, "0123456789") == "":
			l, err := strconv.ParseUint(n.Value, 10, 16)
			port := p.f.LIDPort(fabric.LID(l))
			if err != nil || port == fabric.NoPort {
				return nil, p.Fail(n, "no end port has LID %s; GUIDs begin with 0x, and names that are numbers want quotes", n.Value)
			}
			return append(ports, port), nil
		}
	}
	nodes, err := p.finder.Find(n.Value)
	if err != nil {
		return nil, p.Fail(n, "%w", err)
	}
	before := len(ports)
	for _, node := range nodes {
		ports = p.nodePorts(ports, node)
	}
	if len(ports) == before {
		return nil, p.Fail(n, "no port of %q has a cable", n.Value)
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

// guid appends the end port whose GUID n is.
func (p *parser) guid(ports []fabric.PortID, n *yaml.Node) ([]fabric.PortID, error) {
	g, err := fabric.ParseGUID(n.Value)
	if err != nil {
		return nil, p.Fail(n, "%w", err)
	}
	if port, ok := p.byGUID[g]; ok {
		return append(ports, port), nil
	}
	if node, ok := p.f.NodeByGUID(g); ok {
		own := p.nodePorts(nil, node)
		if len(own) == 0 {
			return nil, p.Fail(n, "no port of node %s has a cable", g)
		}
		guids := text.Each(own[:min(len(own), maxListed)], func(port fabric.PortID) string { return p.f.PortGUID(port).String() })
		return nil, p.Fail(n, "%s is the GUID of a node, %q; want that of a port: %s", g, p.f.Name(node).Text, strings.Join(guids, ", "))
	}
	return nil, p.Fail(n, "no end port has the GUID %s", g)
}

// pattern appends the end ports of all nodes whose description a regular expression matches.
func (p *parser) pattern(ports []fabric.PortID, n *yaml.Node, pattern string) ([]fabric.PortID, error) {
	found, ok := p.patterns[pattern]
	if !ok {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, p.Fail(n, "%w", err)
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
		return nil, p.Fail(n, "no node with a cable has a description that matches %q", pattern)
	}
	return append(ports, found...), nil
}

// maxListed bounds how many ports a message lists.
const maxListed = 5
