package paths

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// Packet is a packet to follow: its source, and the LID that it goes to.
type Packet struct {
	Source fabric.PortID
	LID    fabric.LID
}

// PacketsFrom returns packets from all ports of a host to all LIDs of others.
func PacketsFrom(f *fabric.Fabric, host string) (list []Packet, err error) {
	sources, err := endPorts(f, host)
	for _, src := range sources {
		for _, dst := range f.CAPorts() {
			if f.Owner(dst) != f.Owner(src) && f.PortCounts(dst, fabric.ForLoad) {
				list = appendLIDs(list, f, src, dst)
			}
		}
	}
	return list, err
}

// PacketsBetween returns packets from one host to another or to a LID, each followed by those back.
// A port talks only to the port with the same adapter name and number, if the other host has it;
// with allPorts it talks to all.
func PacketsBetween(f *fabric.Fabric, from, to string, allPorts bool) (list []Packet, err error) {
	sources, err := endPorts(f, from)
	if err != nil {
		return nil, fmt.Errorf("SRC: %w", err)
	}
	if n, err := strconv.ParseUint(to, 10, 16); err == nil {
		lid := fabric.LID(n)
		dst := f.LIDPort(lid)
		if dst == fabric.NoPort {
			return nil, fmt.Errorf("DST: no port has LID %d", lid)
		}
		for _, src := range sources {
			list = appendLIDs(append(list, Packet{src, lid}), f, dst, src)
		}
		return list, nil
	}
	destinations, err := endPorts(f, to)
	if err != nil {
		return nil, fmt.Errorf("DST: %w", err)
	}
	for _, src := range sources {
		for _, dst := range destinations {
			if src != dst && (allPorts || speak(f, src, dst, destinations)) {
				list = appendLIDs(appendLIDs(list, f, src, dst), f, dst, src)
			}
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("%s and %s are the same port, or have no LID", from, to)
	}
	return list, err
}

func appendLIDs(list []Packet, f *fabric.Fabric, src, dst fabric.PortID) []Packet {
	for lid := range f.LIDs(dst) {
		list = append(list, Packet{src, lid})
	}
	return list
}

// speak returns true if src talks to dst: they have the same adapter and number, or no port of
// dst's host has those of src.
func speak(f *fabric.Fabric, src, dst fabric.PortID, all []fabric.PortID) bool {
	adapter := func(p fabric.PortID) (host, adapter string) {
		host, adapter, _ = names.HostOf(f.Name(f.Owner(p)).Text)
		return host, fmt.Sprintf("%s/%d", adapter, f.Num(p))
	}
	_, mine := adapter(src)
	host, its := adapter(dst)
	return mine == its || !slices.ContainsFunc(all, func(p fabric.PortID) bool {
		h, x := adapter(p)
		return h == host && x == mine
	})
}

// endPorts lists the ports with LIDs of the nodes that a text means; of a switch, port 0.
func endPorts(f *fabric.Fabric, text string) (list []fabric.PortID, err error) {
	nodes, err := names.Find(f, text)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if f.IsSwitch(n) {
			list = append(list, f.PortBase(n))
			continue
		}
		for p := range f.Cabled(n) {
			if f.LID(p) != 0 && f.PeerSwitch(p) != fabric.NoNode {
				list = append(list, p)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%q has no port with a LID and a cable", text)
	}
	return list, nil
}
