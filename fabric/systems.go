package fabric

import "slices"

// Systems lists the switches that share a system image GUID, where several do: the chips of
// a director, or those of a switch with several planes, as an XDR switch has four. Systems
// are in the order of their first switch, and so are their switches.
func (f *Fabric) Systems() [][]NodeID {
	first := map[GUID]int{} // by system image GUID: its index in all
	var all [][]NodeID
	for s := range NodeID(f.switches) {
		guid := f.nodes[s].SystemGUID
		if guid == 0 {
			continue
		}
		i, known := first[guid]
		if !known {
			i = len(all)
			first[guid], all = i, append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return slices.DeleteFunc(all, func(chips []NodeID) bool { return len(chips) == 1 })
}
