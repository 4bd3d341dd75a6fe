package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// declaredJobs has the file of traffic, and the files that it names.
type declaredJobs struct {
	sum  [sha256.Size]byte // of all of them, to see whether they have changed
	file *jobs.File
}

// readJobs reads a file of traffic. It returns old if that was read from the same bytes. Errors are
// those of files, and *fabric.ParseError.
func readJobs(name string, old *declaredJobs) (*declaredJobs, error) {
	all := sha256.New()
	file, err := jobs.Read(name, func(name string) ([]byte, error) {
		data, err := readFile(name, maxJobs, jobsTimes)
		fmt.Fprintf(all, "%d ", len(data))
		all.Write(data)
		return data, err
	})
	if err != nil {
		return nil, err
	}
	d := &declaredJobs{[sha256.Size]byte(all.Sum(nil)), file}
	if old != nil && bytes.Equal(old.sum[:], d.sum[:]) {
		return old, nil
	}
	return d, nil
}

// follow has the compiler make tables for the jobs in the present
// file of traffic, if one is configured. If the file cannot be
// read, the error is logged, and jobs that were read before stay.
// If not all hosts of the jobs are in the subnet, that is logged
// too, and the tables are for traffic from all to all.
func (p *Plugin) follow(opt *compile.Options) {
	name, old := p.config.Traffic, p.jobs
	if name == "" {
		return
	}
	d, err := p.jobsFile.get(fileTimeout, func() (*declaredJobs, error) { return readJobs(name, old) })
	if err != nil {
		stays := "the last good jobs stay"
		if old == nil {
			stays = "there were no jobs before, and tables are not made for any"
		}
		p.jobsTrouble(&p.jobsFileError, fmt.Errorf("%w; %s", err, stays))
	} else if p.jobsFileError = ""; d != old {
		p.jobs, p.jobsError = d, ""
		p.log.Info("jobs", zap.String("file", name))
	}
	if p.jobs == nil {
		return
	}
	now := p.jobs
	opt.UniformFloor = p.config.UniformFloor
	opt.Demand = func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		t, err := now.file.In(f, nil)
		var d *lft.Demand
		if err == nil {
			d, err = t.Demand(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.jobsTrouble(&p.jobsError, fmt.Errorf("%w; tables are not made for the jobs", err))
			return nil, nil
		}
		if err == nil {
			p.jobsError = ""
		}
		return d, err
	}
}

// jobsTrouble logs an error of the file of traffic, unless *last is the same.
func (p *Plugin) jobsTrouble(last *string, err error) {
	if text := oneLine(err.Error()); *last != text {
		*last = text
		p.report(&Error{Code: BadConfig, Err: err})
	}
}
