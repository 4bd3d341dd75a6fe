package compile

import (
	"fmt"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// The schemes of SL-to-VL tables, by their names on the command line.
const (
	IdentityVLs    = "identity"
	SpreadVLs      = "spread"
	ByDirectionVLs = "by-direction"
	ByNESWVLs      = "by-direction-nesw"
	DatelineVLs    = "dateline"
)

// SL2VLSchemes lists the schemes.
var SL2VLSchemes = []string{IdentityVLs, SpreadVLs, ByDirectionVLs, ByNESWVLs, DatelineVLs}

// addLanes gives r the SL-to-VL tables that opt asks for. If the engine has made its own,
// its proof needs them; a request for another scheme is then an error.
func addLanes(e *Engine, r *lft.Routing, opt *Options) error {
	scheme, vls := opt.SL2VL, opt.Route.VLs
	refuse := func(format string, args ...any) error {
		return &lft.DomainError{Engine: e.Name(), Reason: fmt.Sprintf(format, args...)}
	}
	if r.SL2VL != nil {
		if scheme != "" && scheme != DatelineVLs {
			return refuse("it is free of credit loops with its own SL-to-VL tables only, not with scheme %s", scheme)
		}
		return nil
	}
	if scheme == "" && vls > 1 {
		scheme = IdentityVLs
	}
	var err error
	switch scheme {
	case "":
	case IdentityVLs:
		r.SL2VL, err = lft.IdentitySL2VL(r.Fabric, max(1, vls))
	case SpreadVLs:
		r.SL2VL, err = lft.SpreadSL2VL(r.Fabric, max(1, vls))
	case ByDirectionVLs, ByNESWVLs:
		g, detectErr := mesh.Detect(r.Fabric, mesh.DetectOptions{Origin: opt.Route.Origin, Dims: opt.Route.Dims})
		if detectErr != nil {
			return refuse("scheme %s needs a mesh: %v", scheme, detectErr)
		}
		if r.SL2VL, err = mesh.ByDirection(g, max(1, vls)); scheme == ByNESWVLs {
			r.SL2VL, err = mesh.ByDirectionNESW(g, max(1, vls))
		}
	case DatelineVLs:
		return refuse("there is nothing here to need scheme %s, which is for the rings that xy routes", scheme)
	}
	if err != nil {
		return refuse("scheme %s: %v", scheme, err)
	}
	return nil
}
