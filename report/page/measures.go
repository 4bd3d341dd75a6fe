package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify/bound"
)

// measure is a value of cables that pictures can show, as in measures of data.js.
type measure struct {
	Counter
	max, mean float64 // over channels between switches with known values
}

// Names of the measures without a Counter.
const (
	routesName  = "routes"
	boundName   = "bound"
	treesName   = "trees"
	choicesName = "choices"
)

// measures lists the measures of this scene, routes first.
func (s *scene) measures() (list []measure) {
	add := func(name, unit string, values []float64) {
		list = append(list, s.measure(Counter{Name: name, Unit: unit, Values: values}))
	}
	routes := text.Each(s.routes, func(n int64) float64 { return float64(n) })
	if s.routes != nil {
		add(routesName, "routes", routes)
	}
	if times := s.boundTimes(); times != nil {
		values := slices.Clone(routes)
		for p := range values {
			values[p] *= times[s.Fabric.Link(fabric.PortID(p))]
		}
		add(boundName, "% of the bound", values)
	}
	if groups := s.groups(); len(groups) > 0 {
		trees := make([]float64, s.Fabric.NumPorts())
		for _, g := range groups {
			for _, p := range s.Multicast.Tables.Ports(g.MLID) {
				trees[p]++
			}
		}
		add(treesName, "multicast trees", trees)
	}
	if s.Adaptive != nil && len(s.Adaptive.PLFTs) > 0 {
		add(choicesName, "LIDs that may take it", s.countChoices())
	}
	for _, c := range s.Counters {
		list = append(list, s.measure(c))
	}
	return list
}

// measure returns a counter as a measure, with its mean and greatest value.
func (s *scene) measure(c Counter) measure {
	m := measure{Counter: c}
	sum, n := 0.0, 0
	for _, p := range s.Fabric.Channels() {
		if v := c.Values[p]; v >= 0 {
			sum += v
			n++
			m.max = max(m.max, v)
		}
	}
	m.mean = sum / float64(max(n, 1))
	return m
}

// boundTimes returns, by kind of cable, one route's part of the bound in percent; nil without
// a bound. A route counts more on slow cables, by the ratio of the fastest rate to theirs.
func (s *scene) boundTimes() map[fabric.Link]float64 {
	b := s.Result.Bound
	if b == nil || len(b.Bounds) == 0 || b.Bounds[0].Least <= 0 || s.routes == nil {
		return nil
	}
	channels := s.Fabric.Channels()
	rates := bound.Rates(s.Fabric, channels)
	fastest := int64(1)
	for i := range rates {
		fastest = max(fastest, rates[i])
	}
	times := make(map[fabric.Link]float64)
	for i, p := range channels {
		times[s.Fabric.Link(p)] = 100 / b.Bounds[0].Least * float64(fastest) / float64(rates[i])
	}
	return times
}

// countChoices counts, by port, the LIDs for which a switch may choose it among several ports
// in some PLFT.
func (s *scene) countChoices() []float64 {
	f := s.Fabric
	counts := make([]float64, f.NumPorts())
	seen := make([]bool, int(fabric.MaxPortNum)+1)
	for _, sw := range f.Switches() {
		for _, lid := range s.lids() {
			clear(seen)
			for plft := range s.Adaptive.PLFTs {
				ports := s.choices(plft, sw, lid)
				if ports.Len() < 2 {
					continue
				}
				ports.Each(func(p fabric.PortNum) {
					if p <= f.Node(sw).NumPorts && !seen[p] {
						seen[p] = true
						counts[f.Port(sw, p)]++
					}
				})
			}
		}
	}
	return counts
}

// chooseMeasure returns the measure to show; nil if there is none. Its error is a
// *RequestError.
func (s *scene) chooseMeasure() (*measure, error) {
	list, name := s.measures(), s.Cables
	var known []string
	for i := range list {
		if name == "" || list[i].Name == name {
			return &list[i], nil
		}
		known = append(known, list[i].Name)
	}
	switch {
	case name == "":
		return nil, nil
	case len(known) == 0:
		return nil, &RequestError{"cables", errors.New("there is nothing that cables can show")}
	}
	return nil, &RequestError{"cables", fmt.Errorf("%q is nothing that they show; want one of %s", name, strings.Join(known, ", "))}
}

// RequestError means that the input does not have what a view, or Input.Cables, asks for.
type RequestError struct {
	Of  string // "view" or "cables"
	Err error
}

func (e *RequestError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *RequestError) Unwrap() error { return e.Err }
