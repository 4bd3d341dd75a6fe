package plan

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// fold makes names comparable: case and the number of blanks do not matter.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// portSpec is the name of a port, taken apart.
type portSpec struct {
	text  string
	card  byte   // 'L', 'S', or 0 for none
	slot  int    // of the card
	unit  int    // 0 when it names no chip
	num   int    // 0 when it names no port by number
	label string // as printed on the cage, "1/12/2"; "" for none
	slot1 bool   // after IB, the label may begin with the slot of the only card: IB1/12/2
}

var (
	plainPort = regexp.MustCompile(`^(?:port|p)?[\s_#-]*(\d{1,3})(?:\.0)?$`)
	bladePort = regexp.MustCompile(`^(blade|leaf|spine|l|s)\s*(\d{1,3})(?:/u(\d{1,2}))?[\s_/]+(?:port\s*|p)?(?:(\d{1,2})/)?(\d{1,3})$`)
	unitPort  = regexp.MustCompile(`^u(\d{1,2})/p?(\d{1,3})$`)
	labelPort = regexp.MustCompile(`^(port\s*|ib\s*)?(\d+(?:/\d+)+)$`)
	nvosPort  = regexp.MustCompile(`^sw(\d+)p(\d+)(?:s(\d+))?$`) // of NVOS: cage, port, split
	trailing  = regexp.MustCompile(`(?i)^(.*\S)(?:\s+port\s+|\s*/\s*p?)(\d{1,3})$`)
	hostUnit  = regexp.MustCompile(`(?i)^u(\d{1,2})(?:/p(\d{1,3}))?$`)
)

// parsePort takes the name of a port apart. Of a name of unknown form it sets only text.
func parsePort(text string) portSpec {
	s := fold(text)
	p := portSpec{text: text}
	number := func(s string) int {
		n, _ := strconv.Atoi(s)
		return n
	}
	if m := plainPort.FindStringSubmatch(s); m != nil {
		p.num = number(m[1])
	} else if m := unitPort.FindStringSubmatch(s); m != nil {
		p.unit, p.num = number(m[1]), number(m[2])
	} else if m := labelPort.FindStringSubmatch(s); m != nil {
		p.label, p.slot1 = m[2], strings.HasPrefix(m[1], "ib")
	} else if m := nvosPort.FindStringSubmatch(s); m != nil {
		p.label = strings.TrimSuffix("1/"+m[1]+"/"+m[2]+"/"+m[3], "/")
	} else if m := bladePort.FindStringSubmatch(s); m != nil && (m[3] == "" || m[4] == "") {
		p.card, p.slot, p.unit, p.num = 'L', number(m[2]), number(m[3]+m[4]), number(m[5])
		if m[1][0] == 's' {
			p.card = 'S'
		}
	}
	if p.num > int(fabric.MaxPortNum) {
		return portSpec{text: text}
	}
	return p
}

// cageNumber returns the port number for a label on a switch of one chip; 0 for unknown labels.
// Labels are ASIC/cage/port or cage/port, with two ports in a cage, on Quantum-2 switches, and
// slot/port of MLNX-OS, where the only slot is 1.
func cageNumber(label string) int {
	var n []int
	for _, field := range strings.Split(label, "/") {
		i, err := strconv.Atoi(field)
		if err != nil || i < 1 || i > int(fabric.MaxPortNum) {
			return 0
		}
		n = append(n, i)
	}
	if len(n) == 3 && n[0] == 1 {
		n = n[1:]
	} else if len(n) == 2 && n[0] == 1 {
		return n[1] // the same if 1 is a cage, not a slot
	}
	if len(n) != 2 || n[0] > 32 || n[1] > 2 {
		return 0
	}
	return 2*(n[0]-1) + n[1]
}

// index finds nodes of a fabric by name.
type index struct {
	f      *fabric.Fabric
	parts  []names.Chip // of switches, by NodeID
	whole  table        // by name or description
	system table        // switches, by the name of their system
	host   table        // adapters, by the name of their host
}

// table maps names, in the forms of keysOf, to nodes.
type table map[string][]fabric.NodeID

// keysOf returns a name in three forms: folded, with blanks for _, and without its domain. Prefixes
// that fold cannot yield keep the forms apart.
func keysOf(name string) [3]string {
	return [3]string{fold(name), " _" + fold(strings.ReplaceAll(name, "_", " ")), " ." + withoutDomain(fold(name))}
}

func (t table) add(name string, n fabric.NodeID) {
	for _, key := range keysOf(name) {
		if list := t[key]; len(list) == 0 || list[len(list)-1] != n {
			t[key] = append(list, n)
		}
	}
}

// find returns the nodes of a name: equal when folded, else with _ for blanks, else
// with a domain that only the node or only the name has.
func (t table) find(name string) []fabric.NodeID {
	keys := keysOf(name)
	if short := keys[2][2:]; short != keys[0] {
		keys[2] = short
	}
	for _, key := range keys {
		if list := t[key]; len(list) > 0 {
			return list
		}
	}
	return nil
}

// withoutDomain cuts the first word of a name at its first dot: "node17.example.com mlx5_0" gives
// "node17 mlx5_0".
func withoutDomain(name string) string {
	word, rest, blank := strings.Cut(name, " ")
	host, domain, _ := strings.Cut(word, ".")
	if host == "" || domain == "" || isNumber(host) {
		return name
	}
	if blank {
		return host + " " + rest
	}
	return host
}

// newIndex indexes the names of f. It takes O(nodes).
func newIndex(f *fabric.Fabric) *index {
	x := &index{f: f, parts: make([]names.Chip, f.NumSwitches()), whole: table{}, system: table{}, host: table{}}
	for _, n := range f.Nodes() {
		for _, name := range []string{f.Name(n).Text, f.Node(n).Description} {
			if name == "" {
				continue
			}
			x.whole.add(name, n)
			if f.IsSwitch(n) {
				x.system.add(names.ChipOf(name).System, n)
			} else if host, _, ok := names.HostOf(name); ok {
				x.host.add(host, n)
			}
		}
		if f.IsSwitch(n) {
			if x.parts[n] = names.ChipOf(f.Name(n).Text); x.parts[n].Unit == 0 {
				x.parts[n] = names.ChipOf(f.Node(n).Description)
			}
		}
	}
	return x
}

// one returns the only node of a list, or the only one whose name or description is exactly name.
func (x *index) one(list []fabric.NodeID, name string) (fabric.NodeID, bool) {
	if len(list) == 1 {
		return list[0], true
	}
	found := fabric.NoNode
	for _, n := range list {
		if x.f.Name(n).Text == name || x.f.Node(n).Description == name {
			if found != fabric.NoNode {
				return fabric.NoNode, false
			}
			found = n
		}
	}
	return found, found != fabric.NoNode
}
