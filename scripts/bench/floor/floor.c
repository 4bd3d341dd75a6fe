/*
 * A plugin of OpenSM with one routing engine, ibweave-floor, that does nothing: what
 * OpenSM takes between "building routing with" and "tables configured" then is what
 * no engine can save.
 */
#include <stddef.h>

#include <iba/ib_types.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_config.h>
#include <opensm/osm_version.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_event_plugin.h>

static int nothing(void *context)
{
	(void)context;
	return 0;
}

static int setup(osm_routing_engine_t *engine, osm_opensm_t *osm)
{
	(void)osm;
	engine->build_lid_matrices = nothing;
	engine->ucast_build_fwd_tables = nothing;
	return 0;
}

static void *create(osm_opensm_t *osm)
{
	static char name[] = "ibweave-floor";
	external_routing_engine_module_t module = { name, setup, NULL };

	return osm_register_external_routing_engine(osm, &module, osm) ? NULL : osm;
}

static void destroy(void *data)
{
	(void)data;
}

static void report(void *data, osm_epi_event_id_t event, void *event_data)
{
	(void)data;
	(void)event;
	(void)event_data;
}

osm_event_plugin_t osm_event_plugin = { OSM_VERSION, create, destroy, report };
