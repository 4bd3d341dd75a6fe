package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// AppendPortList appends f to b as ibnetdiscover -p prints it, in the order of nodes, the
// highest port of each first. It has all ports of switches, and of other nodes those with a
// cable. Ports that are down have width and speed 4x ???.
func AppendPortList(b []byte, f *fabric.Fabric) []byte {
	eachListed(f, true, func(n *fabric.Node, p, peer fabric.PortID) {
		b = appendListPort(b, f, p)
		if peer == fabric.NoPort {
			b = fmt.Appendf(b, " 4x ???%36s'%s'\n", "", clean(n.Description))
			return
		}
		link := f.Link(p)
		width, speed := "??", "???"
		if link.Width != 0 {
			width = fmt.Sprintf("%dx", link.Width)
		}
		if link.Speed != fabric.SpeedUnknown {
			speed = link.Speed.String()
		}
		b = fmt.Appendf(b, " %s %s - ", width, speed)
		b = appendListPort(b, f, peer)
		b = fmt.Appendf(b, " ( '%s' - '%s' )\n", clean(n.Description), clean(f.Node(f.Owner(peer)).Description))
	})
	return b
}

// eachListed visits the ports that lists have, and their peers.
func eachListed(f *fabric.Fabric, down bool, visit func(n *fabric.Node, p, peer fabric.PortID)) {
	order := make([]fabric.NodeID, f.NumNodes())
	for n := range order {
		order[n] = fabric.NodeID(n)
	}
	kinds := []fabric.NodeType{fabric.Switch, fabric.CA, fabric.Router}
	slices.SortStableFunc(order, func(m, n fabric.NodeID) int {
		return slices.Index(kinds, f.Node(m).Type) - slices.Index(kinds, f.Node(n).Type)
	})
	for _, n := range order {
		node := f.Node(n)
		for i := range node.NumPorts {
			num := i + 1
			if down {
				num = node.NumPorts - i
			}
			p := f.Port(n, num)
			if peer := f.Peer(p); peer != fabric.NoPort || node.Type == fabric.Switch {
				visit(node, p, peer)
			}
		}
	}
}

// endOf is the end port that has LID and GUID of a port.
func endOf(f *fabric.Fabric, p fabric.PortID) fabric.PortID {
	if n := f.Owner(p); f.IsSwitch(n) {
		return f.PortBase(n)
	}
	return p
}

// appendListPort appends "SW    24  5 0x000000000020000f".
func appendListPort(b []byte, f *fabric.Fabric, p fabric.PortID) []byte {
	end := endOf(f, p)
	return fmt.Appendf(b, "%s %5d %2d %s", kindWords[f.Node(f.Owner(p)).Type], f.LID(end), f.Num(p), f.PortGUID(end))
}

// clean is a description as tools print it, without control characters.
func clean(d string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, d)
}

// AppendLinkInfo appends f to b as iblinkinfo prints it, with -l if lines says so. All
// cables are active, and there are no notes of what they could be.
func AppendLinkInfo(b []byte, f *fabric.Fabric, lines bool) []byte {
	owner := fabric.NoNode
	eachListed(f, false, func(n *fabric.Node, p, peer fabric.PortID) {
		end := endOf(f, p)
		switch {
		case lines:
			b = fmt.Appendf(b, "%s \"%30s\" ", f.PortGUID(end), clean(n.Description))
		case n.Type == fabric.Switch:
			if f.Owner(p) != owner {
				b = fmt.Appendf(b, "Switch: %s %s:\n", f.PortGUID(end), clean(n.Description))
			}
			b = append(b, "      "...)
		default:
			if f.Owner(p) != owner {
				word := map[fabric.NodeType]string{fabric.CA: "CA", fabric.Router: "Router"}[n.Type]
				b = fmt.Appendf(b, "%s: %s:\n", word, clean(n.Description))
			}
			b = fmt.Appendf(b, "      %s ", f.PortGUID(end))
		}
		owner = f.Owner(p)
		b = fmt.Appendf(b, "%6d %4d[  ] ==%s==>  ", f.LID(end), f.Num(p), linkInfoText(f.Link(p), peer == fabric.NoPort))
		if peer == fabric.NoPort {
			b = append(b, "           [  ] \"\" ( )\n"...)
			return
		}
		other := endOf(f, peer)
		if lines {
			b = append(f.PortGUID(other).Append(b), ' ')
		}
		b = fmt.Appendf(b, "%6d %4d[  ] \"%s\" ( )\n", f.LID(other), f.Num(peer), clean(f.Node(f.Owner(peer)).Description))
	})
	return b
}

// linkInfoText is "( 4X      25.78125 Gbps Active/  LinkUp)".
func linkInfoText(link fabric.Link, down bool) string {
	if down {
		return fmt.Sprintf("(              %6s/%8s)", "Down", "Polling")
	}
	width, speed := "??", "undefined"
	if link.Width != 0 {
		width = fmt.Sprintf("%dX", link.Width)
	}
	for text, s := range linkRates {
		if s == link.Speed {
			if !strings.Contains(text, ".") {
				text += ".0"
			}
			speed = text + " Gbps"
		}
	}
	if link.Speed == fabric.FDR10 {
		speed = "10.0 Gbps (FDR10)"
	}
	return fmt.Sprintf("(%3s %18s %6s/%8s)", width, speed, "Active", "LinkUp")
}

// AppendUFMLinks appends f to b as UFM lists its links, each cable once.
func AppendUFMLinks(b []byte, f *fabric.Fabric) []byte {
	var list []map[string]any
	eachListed(f, false, func(_ *fabric.Node, p, peer fabric.PortID) {
		if peer < p { // NoPort too
			return
		}
		link := map[string]any{"severity": "Info", "capabilities": []string{}}
		name := func(p fabric.PortID) string {
			return fmt.Sprintf("%016x_%d", uint64(f.PortGUID(endOf(f, p))), f.Num(p))
		}
		for side, p := range map[string]fabric.PortID{"source": p, "destination": peer} {
			n := f.Owner(p)
			node, label := f.Node(n), strconv.Itoa(int(f.Num(p)))
			if f.Label(p) != "" {
				label = f.Label(p)
			}
			desc := node.Description
			if node.Type == fabric.Switch {
				desc += ":" + label
			}
			link[side+"_guid"] = fmt.Sprintf("%016x", uint64(node.GUID))
			link[side+"_port"] = strconv.Itoa(int(f.Num(p)))
			link[side+"_port_dname"] = label
			link[side+"_port_name"] = name(p)
			link[side+"_port_node_description"] = desc
		}
		link["name"] = name(p) + ":" + name(peer)
		if w := f.Link(p).Width; w != 0 {
			link["width"] = fmt.Sprintf("%dx", w)
		}
		list = append(list, link)
	})
	if list == nil {
		return append(b, "[]\n"...)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	if err := e.Encode(list); err != nil {
		panic(err) // maps of strings
	}
	return append(b, out.Bytes()...)
}
