package groups

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/hostlist"
)

// slurmFile collects what slurm.conf says about partitions. Lines of topology.conf and in the
// output of scontrol show partition -o have the same form.
type slurmFile struct {
	r        *reader
	hosts    map[string]string   // by name of a node: the name of its host, if that differs
	all      []string            // names of nodes
	features map[string][]string // names of nodes by feature
	sets     map[string]string   // hostlists of node sets
	bySet    map[string]string   // features of node sets
	lists    []slurmList
	usual    string // Nodes of PartitionName=DEFAULT
	included int    // files included so far
}

// slurmList is a partition, a leaf or a block, with its nodes as written.
type slurmList struct {
	definition
	nodes string
}

// maxIncludes bounds the files that are included.
const maxIncludes = 100

// slurm reads the partitions of slurm.conf, or the leaves or blocks of topology.conf.
func (r *reader) slurm(n *yaml.Node, file string) ([]definition, error) {
	if strings.TrimSpace(file) == "" {
		return nil, r.Fail(n, "%s; want the name of a file behind it", yamlfile.KindName(n))
	}
	name := yamlfile.Beside(r.name, file)
	data, err := r.load(name)
	if err != nil {
		return nil, err
	}
	s := &slurmFile{
		r: r, hosts: make(map[string]string), features: make(map[string][]string),
		sets: make(map[string]string), bySet: make(map[string]string),
	}
	if err := s.read(name, data); err != nil {
		return nil, err
	}
	if len(s.lists) == 0 {
		return nil, r.Fail(n, "%s has no partition; want a line with PartitionName=, or with SwitchName= and Nodes=", name)
	}
	var groups []definition
	for i := range s.lists {
		d := s.lists[i].definition
		if d.hosts, err = s.members(s.lists[i].nodes); err != nil {
			return nil, lineError(d.file, d.line, s.lists[i].nodes, err)
		}
		if k := slices.IndexFunc(groups, func(g definition) bool { return g.name == d.name }); k >= 0 {
			groups[k].hosts = append(groups[k].hosts, d.hosts...)
		} else {
			groups = append(groups, d)
		}
	}
	return groups, nil
}

// setting is one KEY=VALUE of a line.
var setting = regexp.MustCompile(`([A-Za-z0-9_.]+)\s*[-+*/]?=\s*(?:"([^"]*)"|(\S+))`)

// read reads the lines of a file. A line that ends with \ goes on in the next one.
func (s *slurmFile) read(name string, data []byte) error {
	joined, first := "", 0
	err := eachLine(data, func(line int, text string) error {
		if joined == "" {
			first = line
		}
		joined += text
		if rest, more := strings.CutSuffix(joined, `\`); more {
			joined = rest + " "
			return nil
		}
		text, joined = joined, ""
		return s.take(name, first, text)
	})
	if err == nil && joined != "" {
		err = s.take(name, first, joined)
	}
	return err
}

// take reads a line, or the file that it includes.
func (s *slurmFile) take(name string, line int, text string) error {
	if words := strings.Fields(text); len(words) == 2 && strings.EqualFold(words[0], "include") {
		if s.included++; s.included > maxIncludes {
			return lineError(name, line, text, fmt.Errorf("more than %d files are included", maxIncludes))
		}
		file := yamlfile.Beside(name, words[1])
		data, err := s.r.load(file)
		if err != nil {
			return err
		}
		return s.read(file, data)
	}
	settings := make(map[string]string)
	for _, m := range setting.FindAllStringSubmatch(text, -1) {
		settings[strings.ToLower(m[1])] = m[2] + m[3]
	}
	return lineError(name, line, text, s.line(name, line, settings))
}

// line stores what a line says. Keys are in lower case.
func (s *slurmFile) line(file string, line int, settings map[string]string) error {
	nodes := settings["nodes"]
	if name := settings["nodename"]; name != "" && !strings.EqualFold(name, "DEFAULT") {
		return s.addNodes(name, settings)
	}
	if set := settings["nodeset"]; set != "" {
		s.sets[set], s.bySet[set] = nodes, settings["feature"]
		return nil
	}
	name, isPartition := settings["partitionname"]
	if !isPartition {
		if name = settings["switchname"] + settings["blockname"]; name == "" || nodes == "" {
			return nil
		}
	}
	switch {
	case isPartition && strings.EqualFold(name, "DEFAULT"):
		s.usual = nodes
		return nil
	case isPartition && nodes == "":
		nodes = s.usual
	}
	if name == "" || name == NoGroup {
		return errors.New("want the name of a partition")
	}
	s.lists = append(s.lists, slurmList{definition{name: name, file: file, line: line}, nodes})
	return nil
}

// addNodes reads a line with NodeName.
func (s *slurmFile) addNodes(list string, settings map[string]string) error {
	nodes, err := s.r.expand(list)
	if err != nil {
		return err
	}
	s.all = append(s.all, nodes...)
	for feature := range strings.SplitSeq(settings["feature"]+","+settings["features"], ",") {
		if feature != "" {
			s.features[feature] = append(s.features[feature], nodes...)
		}
	}
	if settings["nodehostname"] == "" {
		return nil
	}
	hosts, err := s.r.expand(settings["nodehostname"])
	if err != nil {
		return err
	}
	if len(hosts) != len(nodes) {
		return fmt.Errorf("NodeName has %d names and NodeHostname %d; want as many", len(nodes), len(hosts))
	}
	for i, n := range nodes {
		s.hosts[n] = hosts[i]
	}
	return nil
}

// members lists the hosts of a value of Nodes: names of nodes and of node sets, or ALL.
func (s *slurmFile) members(list string) ([]string, error) {
	if list == "(null)" { // as scontrol writes it
		return nil, nil
	}
	names, err := s.r.expand(list)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, name := range names {
		nodes, err := s.nodes(name)
		if err != nil {
			return nil, err
		}
		if s.r.names += len(nodes); s.r.names > hostlist.MaxNames {
			return nil, errTooMany
		}
		for _, n := range nodes {
			hosts = append(hosts, cmp.Or(s.hosts[n], n))
		}
	}
	return hosts, nil
}

// nodes lists the nodes of a node set or of ALL; any other name is a node.
func (s *slurmFile) nodes(name string) ([]string, error) {
	set, isSet := s.sets[name]
	switch {
	case strings.EqualFold(name, "ALL") || isSet && strings.EqualFold(set, "ALL"):
		return s.all, nil
	case isSet:
		nodes, err := s.r.expand(set)
		return slices.Concat(nodes, s.features[s.bySet[name]]), err
	}
	return []string{name}, nil
}
