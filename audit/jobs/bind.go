package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/traffic"
)

// Traffic is the traffic of a file in a fabric.
type Traffic struct {
	f          *fabric.Fabric
	background float64 // part of all bytes
	jobs       []*flows
	host       []int32 // by NodeID of an adapter: the number of its host
}

// scale is the number of units in a byte. Amounts are counted in units, so that each LID of a port
// with several can get an equal part.
const scale = 128

// mostBytes bounds what all jobs send, so that sums in units fit into an int64.
const mostBytes = 1 << 54

// flows has how much each port of a job sends to each other one.
type flows struct {
	name    string
	hosts   []Host
	ranks   int
	ends    []fabric.PortID
	hostOf  []int32 // by index in ends, as Traffic.host
	index   map[fabric.PortID]int32
	streams []stream
}

// stream is a pattern among ranks.
type stream struct {
	pattern traffic.Pattern
	end     []int32   // by rank: index in ends
	ranks   [][]int32 // by index in ends
	unit    float64   // a unit of the pattern, in 1/scale bytes

	set       int // number of the communicator
	storage   int // how many of the last ranks are storage
	operation traffic.Operation
	size      float64 // bytes of data
	weight    float64 // how often it runs
}

// senders returns a function that visits the ports that send to the port with
// index dst, some several times, and what each sends to each LID of that port.
// Ranks of one host send each other nothing by the fabric.
func (t *Traffic) senders(j *flows) func(dst int) iter.Seq2[int, int64] {
	return func(dst int) iter.Seq2[int, int64] {
		return func(yield func(int, int64) bool) {
			lids := t.lids(j.ends[dst])
			for i := range j.streams {
				s := &j.streams[i]
				unit := s.unit / float64(lids)
				units, amount := int64(0), int64(0) // of the last sender; most send the same
				for _, rank := range s.ranks[dst] {
					for src, n := range s.pattern.Senders(len(s.end), int(rank)) {
						from := s.end[src]
						if j.hostOf[from] == j.hostOf[dst] {
							continue
						}
						if n != units {
							units, amount = n, int64(math.Round(min(float64(float64(n)*unit), scale*mostBytes)))
						}
						if amount > 0 && !yield(int(from), amount) {
							return
						}
					}
				}
			}
		}
	}
}

// In finds the hosts of a file in a fabric. set has the groups that jobs may name; nil for none.
// Errors are *fabric.ParseError with the line.
func (x *File) In(f *fabric.Fabric, set *groups.Set) (*Traffic, error) {
	b := &binder{f: f, x: x, set: set, finder: names.NewFinder(f)}
	t := &Traffic{f: f, background: x.background, host: hostNumbers(f)}
	for i := range x.jobs {
		j, err := b.job(&x.jobs[i], t.host)
		if err != nil {
			return nil, err
		}
		t.jobs = append(t.jobs, j)
	}
	t.sort()
	return t, nil
}

// New returns the traffic of f without any job yet.
func New(f *fabric.Fabric) *Traffic { return &Traffic{f: f, host: hostNumbers(f)} }

// Clear returns traffic without jobs in the same fabric.
func (t *Traffic) Clear() *Traffic { return &Traffic{f: t.f, host: t.host} }

// Add adds a job with a new name. hosts are in the order of their ranks, operation is a pattern for
// traffic.Parse, bytes its size, and perHost the ranks of each host, 0 for one on each port. The
// error tells what is wrong with these.
func (t *Traffic) Add(name string, hosts []Host, operation string, bytes float64, perHost int) error {
	o, err := traffic.Parse(operation)
	if err != nil {
		return err
	}
	b := &binder{f: t.f, x: &File{text: &yamlfile.File{}}}
	added, err := b.bind(&job{name: name, perHost: perHost, patterns: []pattern{{operation: o, size: bytes, weight: 1}}}, hosts, t.host)
	if e := new(fabric.ParseError); errors.As(err, &e) {
		err = e.Err // without a place in a file
	}
	if err != nil {
		return err
	}
	t.jobs = append(t.jobs, added)
	t.sort()
	return nil
}

// sort orders jobs by name, so that sums do not depend on the order of the file.
func (t *Traffic) sort() {
	slices.SortFunc(t.jobs, func(a, b *flows) int {
		return cmp.Or(text.Natural(a.name, b.name), strings.Compare(a.name, b.name))
	})
}

// Busy returns by adapter the first name of a job that runs on its host or writes to it.
func (t *Traffic) Busy() map[fabric.NodeID]string {
	busy := make(map[fabric.NodeID]string)
	for _, j := range slices.Backward(t.jobs) {
		for _, p := range j.ends {
			busy[t.f.Owner(p)] = j.name
		}
	}
	return busy
}

// hostNumbers numbers hosts, by adapter. An adapter without a host's name is a host by itself.
func hostNumbers(f *fabric.Fabric) []int32 {
	number := text.Numbers[int32](f.NumNodes())
	hosts, _ := names.Hosts(f, nil, fabric.HostKind, fabric.ServiceKind, fabric.GatewayKind)
	for i := range hosts {
		for _, n := range hosts[i].Nodes {
			number[n] = int32(hosts[i].Nodes[0])
		}
	}
	return number
}

type binder struct {
	f      *fabric.Fabric
	x      *File
	set    *groups.Set
	finder *names.Finder
}

func (b *binder) job(j *job, number []int32) (*flows, error) {
	hosts, err := b.find(j.hosts)
	if j.group != nil {
		hosts, err = b.group(j.group)
	}
	if err != nil {
		return nil, err
	}
	return b.bind(j, hosts, number)
}

// bind returns what a job sends from these hosts. number is that of hostNumbers.
func (b *binder) bind(j *job, hosts []Host, number []int32) (*flows, error) {
	if n := len(hosts) * j.perHost; n > allRanks {
		return nil, b.x.text.Fail(j.at, "%s has %d ranks; want at most %d", j.name, n, allRanks)
	}
	t := &flows{name: j.name, hosts: hosts, index: make(map[fabric.PortID]int32)}
	sets := t.communicators(j)
	for i := range sets {
		t.ranks += len(sets[i])
	}
	for i := range j.patterns {
		if err := b.pattern(t, &j.patterns[i], sets); err != nil {
			return nil, err
		}
	}
	// All ends are known now.
	t.hostOf = text.Each(t.ends, func(p fabric.PortID) int32 { return number[b.f.Owner(p)] })
	for i := range t.streams {
		s := &t.streams[i]
		s.ranks = make([][]int32, len(t.ends))
		for rank, e := range s.end {
			s.ranks[e] = append(s.ranks[e], int32(rank))
		}
	}
	return t, nil
}

// pattern adds the streams of a pattern, one for each communicator.
func (b *binder) pattern(t *flows, p *pattern, sets [][]int32) error {
	fail := func(err error) error {
		return b.x.text.Fail(p.at, "%s: %w", t.name, err)
	}
	var storage []int32
	if p.storage {
		hosts, err := b.find(p.to)
		if err != nil {
			return err
		}
		for i := range hosts {
			for _, port := range hosts[i].Ports {
				storage = append(storage, t.end(port))
			}
		}
	}
	for i, ranks := range sets {
		operation, n := p.operation, len(ranks)
		if p.ranks > 0 && p.ranks != n {
			err := fmt.Errorf("a matrix of %d ranks, and the job has %s on %s", p.ranks, text.Count(n, "rank", "ranks"), text.Count(len(t.hosts), "host", "hosts"))
			if p.ranks%len(t.hosts) == 0 {
				err = fmt.Errorf("%w; want ranks-per-host: %d", err, p.ranks/len(t.hosts))
			}
			return fail(err)
		}
		s := stream{end: ranks, set: i, size: p.size / float64(len(sets)), weight: p.weight}
		if p.storage {
			s.end = slices.Concat(ranks, storage)
			operation, n, s.storage = traffic.ToStorage(len(storage)), len(s.end), len(storage)
		}
		var err error
		if s.pattern, err = operation.Pattern(n); err != nil {
			return fail(err)
		}
		s.operation = operation
		s.unit = scale * p.size * p.weight / float64(len(sets)) * operation.Share(n)
		t.streams = append(t.streams, s)
	}
	return nil
}

// communicators lists sets of ranks that run patterns among themselves, as
// indices in ends: a set for each place of a port on its host, or one set of
// all ranks with ranks-per-host.
func (t *flows) communicators(j *job) (sets [][]int32) {
	if j.perHost == 0 {
		for k := 0; ; k++ {
			var ranks []int32
			for i := range t.hosts {
				if k < len(t.hosts[i].Ports) {
					ranks = append(ranks, t.end(t.hosts[i].Ports[k]))
				}
			}
			if len(ranks) == 0 {
				return sets
			}
			sets = append(sets, ranks)
		}
	}
	n := len(t.hosts)
	ranks := make([]int32, n*j.perHost)
	for r := range ranks {
		h, k := r/j.perHost, r%j.perHost
		if j.cyclic {
			h, k = r%n, r/n
		}
		ports := t.hosts[h].Ports
		ranks[r] = t.end(ports[k*len(ports)/j.perHost])
	}
	return [][]int32{ranks}
}

// end returns the index of a port in ends, and adds a new port.
func (t *flows) end(p fabric.PortID) int32 {
	i, known := t.index[p]
	if !known {
		i = int32(len(t.ends))
		t.index[p] = i
		t.ends = append(t.ends, p)
	}
	return i
}

func (b *binder) group(g *word) ([]Host, error) {
	if b.set == nil {
		return nil, b.x.text.Fail(g.at, "group %q; want the file of groups, --host-groups FILE", g.text)
	}
	found, err := b.set.Find(g.text)
	if err != nil {
		return nil, b.x.text.Fail(g.at, "%w", err)
	}
	var list []Host
	for _, h := range b.set.HostsOf(found) {
		h.Nodes = names.InOrder(b.f, h.Nodes)
		if x := b.host(h); len(x.Ports) > 0 {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil, b.x.text.Fail(g.at, "no host of group %q has a port with a cable to a switch", g.text)
	}
	return list, nil
}

// find lists hosts by name, in the order of the lists.
func (b *binder) find(lists []word) (hosts []Host, err error) {
	used := make(map[fabric.PortID]bool)
	for _, list := range lists {
		fail := func(err error) ([]Host, error) { return nil, b.x.text.Fail(list.at, "%w", err) }
		found, err := b.finder.Hosts(list.text)
		if err != nil {
			return fail(err)
		}
		for _, x := range found {
			h := b.host(x)
			if len(h.Ports) == 0 {
				return fail(fmt.Errorf("%q has no port with a cable to a switch", x.Name))
			}
			for _, p := range h.Ports {
				if used[p] {
					return fail(fmt.Errorf("%q is named twice; ranks-per-host says how many ranks a host has", x.Name))
				}
				used[p] = true
			}
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// host returns a host with its ports that are cabled to a switch.
func (b *binder) host(x names.Host) Host {
	h := Host{Name: x.Name, Nodes: x.Nodes}
	for _, n := range x.Nodes {
		for p := range b.f.Cabled(n) {
			if b.f.PeerSwitch(p) != fabric.NoNode {
				h.Ports = append(h.Ports, p)
			}
		}
	}
	return h
}
