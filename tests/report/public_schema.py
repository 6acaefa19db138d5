"""What the registry would have against an entry, and all that a publisher can tell."""

from datetime import date

COMPLETE = {
    "url_slug": "counties",
    "basic": {
        "name": "Counties",
        "data_curators": [{"data_curator_name": "Office", "data_curator_type": "Government"}],
        "intended_use": "Planning.",
        "data_product_region": "Nowhere",
        "data_product_sector": "Education",
    },
    "privacy_loss": {"number_of_privacy_units": 1000},
    "deployment_model": {
        "trust_assumptions": "The office.",
        "actors": "The office and its readers.",
        "release_type": "One release",
        "release_type_details": "None is planned.",
        "data_source_type": "Static",
        "data_source_type_details": "A census.",
    },
    "implementation": {"preprocessing_and_hyperparameter_tuning": "None.", "justification": "By a board."},
    "administrative": {"registry_authors": ["A. Author"], "evidence_sources": {"page": {"misc": {"title": "A page"}}}},
}
# What the registry's own schema restricts, at the commit that is cited: the order and the kinds of fields.
CHOICE = {
    "data_product_type": "Summary statistics,Machine learning model,Dataset,Synthetic data,Interactive API,SQL queries",
    "data_product_sector": "Technology,Healthcare,Education,Government,Energy,Finance",
    "variant_name": "Pure DP,Approximate DP,Zero-concentrated DP,Renyi DP,Custom",
    "model_name": "Local,Central,Shuffle,Federated,Varies",
    "release_type": "One release,Many releases",
    "data_source_type": "Static,Dynamic",
    "access_type": "Interactive,Non-interactive",
    "status": "Converted,Draft,Pending,Changes Required,Approved,Approved (Update Requested),Approved (Pending)",
}
OTHER = {"data_curators": list, "number_of_privacy_units": int, "privacy_parameters": dict, "evidence_sources": dict,
         "registry_authors": list, "tier": int}  # fmt: skip
PUBLIC = {
    "basic": "name data_curators description intended_use data_product_type data_product_region data_product_sector "
    "publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification "
    "utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}


def problems(entry):
    """What the registry would have against an entry."""
    if list(entry) != ["url_slug", "deployment"] or list(entry["deployment"]) != list(PUBLIC):
        yield "sections"
    yield from [] if isinstance(entry["url_slug"], str) else ["url_slug"]
    for section, content in entry["deployment"].items():
        names = PUBLIC[section].split()
        if [name for name in names if name in content] != list(content):
            yield f"fields of {section}"
        for name, value in content.items():
            if not isinstance(value, OTHER.get(name, str)) or (name in CHOICE and value not in CHOICE[name].split(",")):
                yield f"{section}.{name}"
    date.fromisoformat(entry["deployment"]["basic"]["publication_date"])
    parameters = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    if not all(name in ("epsilon", "delta", "rho") and type(value) is float for name, value in parameters.items()):
        yield "parameters"
