package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// slurmFile reads the hosts of Slurm jobs from what squeue --json or scontrol show job prints.
func (r *reader) slurmFile(n *yaml.Node) error {
	file, err := r.one(n, "the name of a file")
	if err != nil {
		return err
	}
	name := yamlfile.Beside(r.name, file.text)
	data, err := r.open(name)
	if err != nil {
		return err
	}
	r.asked = true
	r.slurm, err = readSlurm(name, data)
	return err
}

// slurmJob returns the hosts of the Slurm job whose id is n.
func (r *reader) slurmJob(n *yaml.Node) ([]word, error) {
	id, err := r.file.Text(n, "the number of a Slurm job")
	if err != nil {
		return nil, err
	}
	j, known := r.slurm[id]
	hosts := j.hosts
	switch {
	case !r.asked:
		return nil, r.file.Fail(n, "a Slurm job without a file of them; want slurm: FILE above the jobs, with what squeue --json prints")
	case !known:
		return nil, r.file.Fail(n, "no Slurm job %s in the file", id)
	case hosts == "":
		return nil, r.file.Fail(n, "Slurm job %s has no hosts; it waits or has ended", id)
	}
	return []word{{hosts, n}}, nil
}

// slurmJob is a job of Slurm.
type slurmJob struct {
	hosts string // "" for a job that has none
	ended bool   // hosts are those that it had
}

// setStates sets whether a job has ended: a job in state COMPLETING has not, whatever its other states are.
func (j *slurmJob) setStates(states []string) {
	for _, s := range states {
		switch s {
		case "COMPLETING":
			j.ended = false
			return
		case "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT":
			j.ended = true
		}
	}
}

// AddSlurm adds the running jobs in the output of squeue --json or scontrol
// show job. Each is called slurm and its number, and runs an all-to-all of
// that many bytes. Hosts that have a job already are left out. unknown lists
// hosts that the fabric lacks. Errors are *fabric.ParseError.
func (t *Traffic) AddSlurm(name string, data []byte, bytes float64) (unknown []string, err error) {
	all, err := readSlurm(name, data)
	if err != nil {
		return nil, err
	}
	finder := names.NewFinder(t.f)
	busy := t.Busy()
	b := &binder{f: t.f}
	total := 0
	for _, id := range text.SortNatural(slices.Collect(maps.Keys(all))) {
		j := all[id]
		if j.ended || j.hosts == "" {
			continue
		}
		list, err := hostlist.Expand(j.hosts)
		if total += len(list); err == nil && total > hostlist.MaxNames {
			err = fmt.Errorf("this job and those before it have more than %d hosts", hostlist.MaxNames)
		}
		if err != nil {
			return nil, &fabric.ParseError{File: name, Err: fmt.Errorf("job %s: %w", id, err)}
		}
		var hosts []Host
		for _, host := range list {
			found, err := finder.Hosts(host)
			if err != nil || len(found) != 1 {
				unknown = append(unknown, host)
				continue
			}
			h := b.host(found[0])
			if h.Name = host; len(h.Ports) > 0 && !slices.ContainsFunc(h.Nodes, func(n fabric.NodeID) bool { return busy[n] != "" }) {
				hosts = append(hosts, h)
			}
		}
		if len(hosts) == 0 {
			continue
		}
		if err := t.Add("slurm "+id, hosts, "alltoall", bytes, 0); err != nil {
			return nil, &fabric.ParseError{File: name, Err: fmt.Errorf("job %s: %w", id, err)}
		}
	}
	return unknown, nil
}

// readSlurm reads jobs, by their ids.
func readSlurm(name string, data []byte) (map[string]slurmJob, error) {
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("{")) {
		return readSqueue(name, data)
	}
	jobs := make(map[string]slurmJob)
	id, line := "", 0
	for text := range strings.Lines(string(data)) {
		line++
		for _, word := range strings.Fields(text) {
			key, value, is := strings.Cut(word, "=")
			switch {
			case is && key == "JobId":
				id = value
				jobs[id] = slurmJob{}
			case is && key == "JobState":
				j := jobs[id]
				j.setStates([]string{value})
				jobs[id] = j
			case is && key == "NodeList" && id == "":
				return nil, &fabric.ParseError{File: name, Line: line, Text: strings.TrimSpace(text), Err: errors.New("a NodeList without a JobId before it")}
			case is && key == "NodeList" && value != "(null)":
				j := jobs[id]
				j.hosts = value
				jobs[id] = j
			}
		}
	}
	if len(jobs) == 0 {
		return nil, &fabric.ParseError{File: name, Err: errors.New("no JobId; want what squeue --json or scontrol show job prints")}
	}
	return jobs, nil
}

// readSqueue reads JSON: all versions of Slurm's data parser have the members job_id, nodes and
// job_state, which is a list from Slurm 23.11 on.
func readSqueue(name string, data []byte) (map[string]slurmJob, error) {
	var doc struct {
		Jobs []struct {
			ID    *int64 `json:"job_id"`
			Nodes string `json:"nodes"`
			State any    `json:"job_state"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		e := &fabric.ParseError{File: name, Err: fmt.Errorf("%w; want what squeue --json prints", err)}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			e.Line = 1 + bytes.Count(data[:min(max(syntax.Offset-1, 0), int64(len(data)))], []byte("\n"))
		} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Line = 1 + bytes.Count(data[:min(kind.Offset, int64(len(data)))], []byte("\n"))
		}
		return nil, e
	}
	if doc.Jobs == nil {
		return nil, &fabric.ParseError{File: name, Err: errors.New(`no "jobs"; want what squeue --json prints`)}
	}
	jobs := make(map[string]slurmJob, len(doc.Jobs))
	for _, j := range doc.Jobs {
		if j.ID == nil {
			continue
		}
		x := slurmJob{hosts: j.Nodes}
		states, _ := j.State.([]any)
		var list []string
		for _, s := range append(states, j.State) {
			if s, is := s.(string); is {
				list = append(list, s)
			}
		}
		x.setStates(list)
		jobs[fmt.Sprint(*j.ID)] = x
	}
	return jobs, nil
}
