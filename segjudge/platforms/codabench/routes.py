"""The paths of Codabench's REST API."""

LOGIN = "/api/api-token-auth/"
DATA_SETS, COMPLETED = "/api/datasets/", "/api/datasets/completed/{key}/"
STATUS = "/api/competitions/{status:int}/creation_status/"
COMPETITION = "/api/competitions/{competition:int}/"
FILES, DUMP = f"{COMPETITION}get_files/", f"{COMPETITION}create_dump/"
PARTICIPANTS, SUBMISSIONS = "/api/participants/", "/api/submissions/"
DETAILS = "/api/submissions/{submission:int}/get_details/"
