package open

import (
	"context"

	"github.com/ibweave/ibweave/state"
)

// Path reads everything in a directory that compile wrote, a folder of dumps, a run of ibdiagnet, an
// archive of one of these, or a file with a topology. Errors are those of ctx, *Error, and
// *fabric.ParseError for a line of a text.
func Path(ctx context.Context, path string, opt Options) (*state.State, error) {
	in := Input{Options: opt}
	if File(path) {
		in.Topology = path
	} else if err := in.FindIn(path, false); err != nil {
		return nil, err
	}
	return in.All(ctx)
}

// Named reads all files in names.
func Named(ctx context.Context, names Files, opt Options) (*state.State, error) {
	in := Input{Files: names, Options: opt}
	in.State.UnknownSLs = names.SL2VL != "" && names.PathSLs == ""
	return in.All(ctx)
}
