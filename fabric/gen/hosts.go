package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// adapterOf parses "adapter 3 host 1 unit 0": n is 3, and the rest
// is the host. Any other description is a host with adapter 0.
func adapterOf(description string) (n int, host string) {
	if rest, ok := strings.CutPrefix(description, "adapter "); ok {
		number, host, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(number); err == nil {
			return n, host
		}
	}
	return 0, description
}

// fill removes random hosts from f, with all their adapters; percent of each 100
// hosts stay. A switch with hosts keeps one.
func fill(f *fabric.Fabric, percent int, seed uint64) (*fabric.Fabric, error) {
	if percent < 1 || percent > 100 {
		return nil, fmt.Errorf("%d of 100 hosts: want 1 to 100", percent)
	}
	// hosts has the adapters of each host, hosts in the order
	// of their first adapters; of has a host's index by name.
	var hosts [][]fabric.NodeID
	of := map[string]int{}
	for n := fabric.NodeID(f.NumSwitches()); int(n) < f.NumNodes(); n++ { // by GUID
		_, name := adapterOf(f.Node(n).Description)
		if _, ok := of[name]; !ok {
			of[name] = len(hosts)
			hosts = append(hosts, nil)
		}
		hosts[of[name]] = append(hosts[of[name]], n)
	}
	on := make([]int, f.NumSwitches()) // by switch: number of cables to hosts
	count := func(adapters []fabric.NodeID, change int) (bare bool) {
		for _, a := range adapters {
			for p := range f.Cabled(a) {
				if s := f.PeerSwitch(p); s != fabric.NoNode {
					on[s] += change
					bare = bare || on[s] == 0
				}
			}
		}
		return bare
	}
	for _, adapters := range hosts {
		count(adapters, 1)
	}
	gone := make([]bool, f.NumNodes())
	remove := len(hosts) - (len(hosts)*percent+99)/100
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(hosts)) {
		if remove == 0 {
			break
		}
		if count(hosts[i], -1) {
			count(hosts[i], 1)
			continue
		}
		for _, a := range hosts[i] {
			gone[a] = true
		}
		remove--
	}
	return f.Part(text.Where(f.Nodes(), func(n fabric.NodeID) bool { return !gone[n] }))
}

// addServiceHosts puts n hosts on the first free ports of switches without
// hosts that are next to a switch with hosts. The switches take turns.
func (p *Plan) addServiceHosts(n int) error {
	f := p.of
	hasHosts := func(s fabric.NodeID) bool { return len(f.EndPortsOn(s)) > 0 }
	var free [][]end // free ports of each such switch
	total, most := 0, 0
	for _, s := range f.Switches() {
		if hasHosts(s) || !slices.ContainsFunc(f.Neighbors(s), hasHosts) {
			continue
		}
		var ports []end
		for at := f.PortBase(s) + 1; at < f.PortBase(s+1); at++ {
			if f.Peer(at) == fabric.NoPort {
				ports = append(ports, p.end(at))
			}
		}
		free = append(free, ports)
		total, most = total+len(ports), max(most, len(ports))
	}
	if n < 0 || n > total {
		return fmt.Errorf("%d service hosts: want 0 to %d, the free ports of switches above those with hosts; switches with more ports have more", n, total)
	}
	added := 0
	for round := range most {
		for _, ports := range free {
			if round >= len(ports) || added == n {
				continue
			}
			p.Cable(p.CA(1, "service "+strconv.Itoa(added)), 1, ports[round].node, int(ports[round].port))
			added++
		}
	}
	return nil
}
