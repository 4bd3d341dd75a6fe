package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/audit/yamlfile"
	"github.com/ibweave/ibweave/fabric"
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

// slurmJob is the hosts of a job by its id.
func (r *reader) slurmJob(n *yaml.Node) ([]word, error) {
	id, err := r.file.Text(n, "the number of a Slurm job")
	if err != nil {
		return nil, err
	}
	hosts, known := r.slurm[id]
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

// readSlurm reads the hosts of jobs by their ids; hosts are "" for a job that has none.
func readSlurm(name string, data []byte) (map[string]string, error) {
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("{")) {
		return readSqueue(name, data)
	}
	jobs := make(map[string]string)
	id, line := "", 0
	for text := range strings.Lines(string(data)) {
		line++
		for _, word := range strings.Fields(text) {
			key, value, is := strings.Cut(word, "=")
			switch {
			case is && key == "JobId":
				id = value
				jobs[id] = ""
			case is && key == "NodeList" && id == "":
				return nil, &fabric.ParseError{File: name, Line: line, Text: strings.TrimSpace(text), Err: errors.New("a NodeList without a JobId before it")}
			case is && key == "NodeList" && value != "(null)":
				jobs[id] = value
			}
		}
	}
	if len(jobs) == 0 {
		return nil, &fabric.ParseError{File: name, Err: errors.New("no JobId; want what squeue --json or scontrol show job prints")}
	}
	return jobs, nil
}

// readSqueue reads JSON: all versions of Slurm's data parser have the members job_id and nodes.
func readSqueue(name string, data []byte) (map[string]string, error) {
	var doc struct {
		Jobs []struct {
			ID    *int64 `json:"job_id"`
			Nodes string `json:"nodes"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		e := &fabric.ParseError{File: name, Err: fmt.Errorf("%w; want what squeue --json prints", err)}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			e.Line = 1 + bytes.Count(data[:min(max(syntax.Offset-1, 0), int64(len(data)))], []byte("\n"))
		case errors.As(err, &kind):
			e.Line = 1 + bytes.Count(data[:min(kind.Offset, int64(len(data)))], []byte("\n"))
		}
		return nil, e
	}
	if doc.Jobs == nil {
		return nil, &fabric.ParseError{File: name, Err: errors.New(`no "jobs"; want what squeue --json prints`)}
	}
	jobs := make(map[string]string, len(doc.Jobs))
	for _, j := range doc.Jobs {
		if j.ID != nil {
			jobs[fmt.Sprint(*j.ID)] = j.Nodes
		}
	}
	return jobs, nil
}
