// Package jobs knows what the jobs of a cluster send. It reads files of traffic, finds their hosts
// in a fabric, and computes the loads under forwarding tables, and which jobs slow each other down.
// It makes no promise to other modules.
//
// The file is YAML:
//
//	slurm: jobs.json                    # what squeue --json or scontrol show job prints
//	background: 0.1                     # the part of all bytes that all hosts send to all
//	jobs:
//	  - name: train
//	    hosts: n[001-016]               # in the order of their ranks; or a list of such
//	    patterns:
//	      - {pattern: allreduce-ring, size: 256M, weight: 4}
//	      - {pattern: to-storage, size: 1G, to: "oss[1-4]"}
//	  - name: cfd
//	    slurm: 4711                     # the hosts of a Slurm job
//	    ranks-per-host: 8
//	    order: cyclic                   # rank 1 is on the second host; by default block
//	    patterns:
//	      - {pattern: matrix, file: cfd.csv}
//	  - name: rest
//	    group: rack:r12                 # a group of hosts (package groups)
//	    patterns: [{pattern: "halo:4x4", size: 1M}]
//
// Without ranks-per-host each host has one rank for each of its ports. Ports
// at the same place of their hosts run the patterns among themselves, as the
// rails of a cluster do, and each such set has its part of the size. File
// names are relative to the file that has them.
package jobs

import (
	"cmp"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/traffic"
)

// File is traffic as written.
type File struct {
	text       *yamlfile.File
	background float64
	jobs       []job
}

// Name returns the name of the file.
func (t *File) Name() string { return t.text.Name }

// job is a job as written.
type job struct {
	name     string
	at       *yaml.Node
	hosts    []word // lists of names
	group    *word
	perHost  int // ranks; 0 for one on each port
	cyclic   bool
	patterns []pattern
}

// word is a text in the file, with its place.
type word struct {
	text string
	at   *yaml.Node
}

// pattern is a pattern as written.
type pattern struct {
	at        *yaml.Node
	operation traffic.Operation
	ranks     int    // that a matrix is for; 0 for any number
	to        []word // names of storage, nil for other patterns
	storage   bool
	size      float64 // bytes of data
	weight    float64 // how often it runs
}

// Bounds of numbers.
const (
	maxSize   = 1 << 50
	minWeight = 1e-6
	maxWeight = 1e6
	maxRanks  = 1 << 10 // per host
	allRanks  = 1 << 17 // per job with ranks-per-host
	maxJobs   = 1 << 12
)

// Background is the name of the traffic of all hosts to all, which no job may have.
const Background = "background"

// Read reads a file of traffic. open reads it and the files that it names. Errors are those of
// open, or *fabric.ParseError with the line; the file is nil then.
func Read(name string, open func(name string) ([]byte, error)) (*File, error) {
	data, err := open(name)
	if err != nil {
		return nil, err
	}
	const want = `jobs, like jobs: [{name: a, hosts: "n[1-4]", patterns: [{pattern: alltoall, size: 1M}]}]`
	file, root, err := yamlfile.Parse(name, data, yamlfile.Limit, "a file of traffic", want)
	if err != nil {
		return nil, err
	}
	r := &reader{file: file, name: name, open: open, x: &File{text: file}, slurm: make(map[string]slurmJob)}
	var list *yaml.Node
	err = file.Mapping(root, map[string]func(*yaml.Node) error{
		"slurm": r.slurmFile,
		"background": func(n *yaml.Node) error {
			r.x.background, err = r.number(n, "the part of all bytes that is background,", 0, 0.99)
			return err
		},
		"jobs": func(n *yaml.Node) error { list = n; return nil },
	})
	if err != nil {
		return nil, err
	}
	if list == nil || len(list.Content) == 0 {
		return nil, file.Fail(root, "no jobs; want %s", want)
	}
	if len(list.Content) > maxJobs {
		return nil, file.Fail(list, "%d jobs; want at most %d", len(list.Content), maxJobs)
	}
	names := make(map[string]int)
	if err := file.List(list, "jobs", func(n *yaml.Node) error {
		j, err := r.job(n)
		if err != nil {
			return err
		}
		if line, is := names[j.name]; is {
			return file.Fail(n, "a job %q is in line %d already; want another name", j.name, line)
		}
		names[j.name] = n.Line
		r.x.jobs = append(r.x.jobs, j)
		return nil
	}); err != nil {
		return nil, err
	}
	return r.x, nil
}

type reader struct {
	file  *yamlfile.File
	name  string
	open  func(string) ([]byte, error)
	x     *File
	slurm map[string]slurmJob // by id
	asked bool                // a file of Slurm was named
}

func (r *reader) number(n *yaml.Node, what string, least, most float64) (float64, error) {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= least && v <= most) {
		return 0, r.file.Fail(n, "%s; want %s from %g to %g", yamlfile.KindName(n), what, least, most)
	}
	return v, nil
}

func (r *reader) job(n *yaml.Node) (j job, err error) {
	j.at = n
	var list *yaml.Node
	texts := func(to *string, what string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			*to, err = r.file.Text(n, what)
			return err
		}
	}
	sources := 0
	if err := r.file.Mapping(n, map[string]func(*yaml.Node) error{
		"name":     texts(&j.name, "the name of a job"),
		"hosts":    func(n *yaml.Node) error { sources++; j.hosts, err = r.lists(n); return err },
		"slurm":    func(n *yaml.Node) error { sources++; j.hosts, err = r.slurmJob(n); return err },
		"group":    func(n *yaml.Node) error { sources++; j.group, err = r.one(n, "the name of a group"); return err },
		"patterns": func(n *yaml.Node) error { list = n; return nil },
		"ranks-per-host": func(n *yaml.Node) error {
			j.perHost, err = r.file.Number(n, 1, maxRanks)
			return err
		},
		"order": func(n *yaml.Node) error {
			if n.Value != "block" && n.Value != "cyclic" {
				return r.file.Fail(n, "%s; want block or cyclic", yamlfile.KindName(n))
			}
			j.cyclic = n.Value == "cyclic"
			return nil
		},
	}); err != nil {
		return j, err
	}
	switch {
	case j.name == "" || j.name == Background:
		return j, r.file.Fail(n, "a job called %q; want a name, and another one than %s", j.name, Background)
	case sources != 1:
		return j, r.file.Fail(n, "job %s has %d of hosts, slurm and group; want one of them", j.name, sources)
	case list == nil || len(list.Content) == 0:
		return j, r.file.Fail(n, "job %s has no patterns; want one, like patterns: [{pattern: alltoall, size: 1M}]", j.name)
	case j.cyclic && j.perHost == 0:
		return j, r.file.Fail(n, "job %s has an order; want ranks-per-host beside it", j.name)
	}
	return j, r.file.List(list, "patterns", func(n *yaml.Node) error {
		p, err := r.pattern(n)
		j.patterns = append(j.patterns, p)
		return err
	})
}

func (r *reader) one(n *yaml.Node, what string) (*word, error) {
	s, err := r.file.Text(n, what)
	return &word{s, n}, err
}

// lists reads one list of names, or several.
func (r *reader) lists(n *yaml.Node) (list []word, err error) {
	const what = "names of hosts, like n[001-016]"
	add := func(n *yaml.Node) error {
		s, err := r.one(n, what)
		list = append(list, *s)
		return err
	}
	if n.Kind != yaml.SequenceNode {
		return list, add(n)
	}
	if len(n.Content) == 0 {
		return nil, r.file.Fail(n, "no host; want %s", what)
	}
	return list, r.file.List(n, what, add)
}

func (r *reader) pattern(n *yaml.Node) (p pattern, err error) {
	p.at = n
	name, file, size, weight := "", (*word)(nil), 0.0, 1.0
	if err := r.file.Mapping(n, map[string]func(*yaml.Node) error{
		"pattern": func(n *yaml.Node) error {
			if name, err = r.file.Text(n, traffic.Operations+", to-storage or matrix"); err != nil || name == "to-storage" || name == "matrix" {
				return err
			}
			if p.operation, err = traffic.Parse(name); err != nil {
				err = r.file.Fail(n, "%w, to-storage or matrix", err)
			}
			return err
		},
		"size":   func(n *yaml.Node) error { size, err = r.size(n); return err },
		"weight": func(n *yaml.Node) error { weight, err = r.number(n, "a weight", minWeight, maxWeight); return err },
		"file":   func(n *yaml.Node) error { file, err = r.one(n, "the name of a file"); return err },
		"to":     func(n *yaml.Node) error { p.to, err = r.lists(n); return err },
	}); err != nil {
		return p, err
	}
	p.storage = name == "to-storage"
	switch {
	case name == "":
		return p, r.file.Fail(n, "no pattern; want one, like {pattern: alltoall, size: 1M}")
	case (name == "matrix") != (file != nil):
		return p, r.file.Fail(n, "pattern %s; want a file beside matrix, and beside no other", name)
	case p.storage != (p.to != nil):
		return p, r.file.Fail(n, "pattern %s; want the hosts of storage, to:, beside to-storage, and beside no other", name)
	case size == 0 && file == nil:
		return p, r.file.Fail(n, "pattern %s has no size; want one, like size: 64M", name)
	}
	if file != nil {
		name = yamlfile.Beside(r.name, file.text)
		data, err := r.open(name)
		if err != nil {
			return p, err
		}
		m, err := ReadMatrix(name, data)
		if err != nil {
			return p, err
		}
		p.operation, p.ranks = m.Operation(), m.Ranks()
		size = cmp.Or(size, 1)
	}
	p.size, p.weight = size, weight
	return p, nil
}

var sizes = regexp.MustCompile(`^(\d{1,15}(?:\.\d{1,9})?)([kKMGT]?)(?:i?B)?$`)

func (r *reader) size(n *yaml.Node) (float64, error) {
	if v, ok := ParseSize(n.Value); ok && n.Kind == yaml.ScalarNode {
		return v, nil
	}
	return 0, r.file.Fail(n, "%s; want bytes, %s", yamlfile.KindName(n), Sizes)
}

// Sizes describes what ParseSize takes.
const Sizes = "like 4096, 64K, 1.5M, 2G or 1T, at most 1024T"

// ParseSize reads a number of bytes above 0.
func ParseSize(text string) (float64, bool) {
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	v *= map[string]float64{"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[m[2]]
	return v, err == nil && v > 0 && v <= maxSize
}
