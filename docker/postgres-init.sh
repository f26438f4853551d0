#!/bin/sh
# Two databases with an owner each, who can read nothing of the other's. Passwords from the environment: they are
# in no argument list. UTF-8 whatever the cluster's own encoding: psycopg reads an SQL_ASCII one as bytes.
set -eu
: "${SPECSWEEP_DB_PASSWORD:?}" "${MLFLOW_DB_PASSWORD:?}"
exec psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres << 'SQL'
\getenv specsweep_password SPECSWEEP_DB_PASSWORD
\getenv mlflow_password MLFLOW_DB_PASSWORD
CREATE ROLE specsweep LOGIN PASSWORD :'specsweep_password';
CREATE ROLE mlflow LOGIN PASSWORD :'mlflow_password';
CREATE DATABASE specsweep OWNER specsweep ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE mlflow OWNER mlflow ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE specsweep, mlflow, postgres FROM PUBLIC;
SQL
